"""What results mean: findings, previews, the state of a site; pure, from events and answers."""
