"""What results mean: findings, forecasts, the state of a site; pure, from events and answers."""
