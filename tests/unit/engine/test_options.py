from pathlib import Path

from deploy.engine.options import Options


def test_ansible_gets_what_was_typed_and_nothing_else() -> None:
    assert Options().connection() == []
    assert Options().playbook() == []
    options = Options(
        user="admin",
        private_key=Path("/keys/mine"),
        vault_password_file=Path("/keys/vault"),
        tags="munge",
        skip_tags="install",
        check=True,
        diff=True,
        verbose=3,
    )
    assert options.connection() == [
        *("--user", "admin", "--private-key", "/keys/mine", "--vault-password-file", "/keys/vault")
    ]
    assert options.playbook() == ["--tags", "munge", "--skip-tags", "install", "--check", "--diff", "-vvv"]


def test_passwords_are_in_no_repr() -> None:
    assert "s3cret" not in repr(Options(connection_password="s3cret", become_password="s3cret"))  # noqa: S106
