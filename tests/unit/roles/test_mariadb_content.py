import pytest

from tests.unit.roles.loading import load_module

module = load_module("roles/mariadb/library/mariadb_content.py")

SLURM = module.Account("slurm", "localhost")


def grants(**places: str) -> dict[str, frozenset[str]]:
    """``db="SELECT,INSERT"`` for ``db.*``."""
    return {f"{name}.*": frozenset(text.split(",")) for name, text in places.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("slurm_acct_db.*:ALL", grants(slurm_acct_db="ALL PRIVILEGES")),
        (
            "*.*:process, REPLICATION CLIENT/`a b`.*:SELECT",
            {"*.*": frozenset({"PROCESS", "BINLOG MONITOR"}), "a b.*": frozenset({"SELECT"})},
        ),
        ("db.t:SELECT(b, `a`),GRANT", {"db.t": frozenset({"SELECT(a,b)", "GRANT OPTION"})}),
        ("PROCEDURE db.p:EXECUTE", {"PROCEDURE db.p": frozenset({"EXECUTE"})}),
        ("db.*:USAGE", {"db.*": frozenset()}),
    ],
)
def test_privileges_as_declared(text: str, expected: dict[str, frozenset[str]]) -> None:
    assert module.declared(text) == expected


@pytest.mark.parametrize("text", ["ALL", "db:ALL", "", "db.*", "a.b.c:ALL", "db.*; DROP DATABASE x.*:ALL"])
def test_what_are_no_privileges(text: str) -> None:
    with pytest.raises(ValueError, match="want DATABASE"):
        module.declared(text)


def test_privileges_as_the_server_shows_them() -> None:
    assert module.granted(
        [
            "GRANT `reader` TO `slurm`@`localhost`",
            "GRANT USAGE ON *.* TO `slurm`@`localhost` IDENTIFIED BY PASSWORD '*AA'",
            "GRANT ALL PRIVILEGES ON `slurm_acct_db`.* TO `slurm`@`localhost` WITH GRANT OPTION",
            "GRANT SELECT (`b`, `a`), INSERT ON `x`.`t` TO `slurm`@`localhost`",
            "GRANT EXECUTE ON PROCEDURE `x`.`p` TO `slurm`@`localhost`",
            "GRANT PROXY ON ''@'%' TO 'root'@'localhost' WITH GRANT OPTION",
        ]
    ) == {
        "slurm_acct_db.*": frozenset({"ALL PRIVILEGES", "GRANT OPTION"}),
        "x.t": frozenset({"SELECT(a,b)", "INSERT"}),
        "PROCEDURE x.p": frozenset({"EXECUTE"}),
    }


# What MariaDB 11.8 shows of CREATE USER … IDENTIFIED BY 'secret'.
SECRET = "*14E65567ABDB5135D0CFD9A70B3032C179A49EE7"  # noqa: S105 - a documented one


@pytest.mark.parametrize(
    ("shown", "password", "expected"),
    [
        (f" IDENTIFIED BY PASSWORD '{SECRET}'", "secret", True),
        (f" IDENTIFIED VIA mysql_native_password USING '{SECRET}'", "secret", True),
        (f" IDENTIFIED VIA mysql_native_password USING '{SECRET}' OR unix_socket", "secret", False),
        (f" IDENTIFIED BY PASSWORD '{SECRET}'", "another", False),
        (f" IDENTIFIED BY PASSWORD '{SECRET}'", None, False),
        ("", "secret", False),
        ("", None, False),
        (" IDENTIFIED VIA unix_socket", None, True),
        (" IDENTIFIED VIA unix_socket", "secret", False),
    ],
)
def test_who_is_let_in(shown: str, password: str | None, *, expected: bool) -> None:
    assert module.is_let_in_so(f"CREATE USER `slurm`@`localhost`{shown}", password) is expected


@pytest.mark.parametrize(
    ("now", "then", "statements"),
    [
        (grants(db="SELECT"), grants(db="SELECT"), []),
        ({}, grants(db="SELECT,INSERT"), ["GRANT INSERT, SELECT ON `db`.* TO"]),
        (grants(db="SELECT,DROP"), grants(db="SELECT"), ["REVOKE DROP ON `db`.* FROM"]),
        (grants(db="SELECT"), grants(db="ALL PRIVILEGES"), ["GRANT ALL PRIVILEGES ON `db`.* TO"]),
        (
            grants(db="ALL PRIVILEGES,GRANT OPTION"),
            grants(db="SELECT"),
            [
                "REVOKE ALL PRIVILEGES ON `db`.* FROM",
                "REVOKE GRANT OPTION ON `db`.* FROM",
                "GRANT SELECT ON `db`.* TO",
            ],
        ),
        (
            grants(db="ALL PRIVILEGES,GRANT OPTION"),
            grants(db="ALL PRIVILEGES"),
            ["REVOKE GRANT OPTION ON `db`.* FROM"],
        ),
        (
            grants(old="SELECT"),
            {"*.*": frozenset({"PROCESS"})},
            ["GRANT PROCESS ON *.* TO", "REVOKE SELECT ON `old`.* FROM"],
        ),
    ],
)
def test_what_changes_privileges(
    now: dict[str, frozenset[str]], then: dict[str, frozenset[str]], statements: list[str]
) -> None:
    changes = list(module.regranted(SLURM, now, then))
    assert [change.statement for change in changes] == [f"{one} 'slurm'@'localhost'" for one in statements]


def test_names_are_quoted() -> None:
    assert str(module.Account("o'neil", "%")) == "'o''neil'@'%'"
    change = next(module.regranted(SLURM, {}, {"a`b.*": frozenset({"SELECT"})}))
    assert "`a``b`.*" in change.statement


class Fake:
    """A server that answers from a table; what it was told is noted."""

    def __init__(self, answers: dict[str, list[str]]) -> None:
        self.answers = answers

    def lines(self, statement: str) -> list[str]:
        return self.answers[statement]


def test_passwords_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Fake(
        {
            "SHOW DATABASES": ["mysql", "test"],
            "SELECT user, host FROM mysql.user WHERE is_role = 'N'": ["\tlocalhost", "slurm\tlocalhost"],
            "SHOW CREATE USER 'slurm'@'localhost'": ["CREATE USER `slurm`@`localhost`"],
            "SHOW GRANTS FOR 'slurm'@'localhost'": [],
        }
    )
    server = object.__new__(module.Server)
    monkeypatch.setattr(module.Server, "lines", lambda _, statement: fake.lines(statement))
    users = [
        {"name": "slurm", "host": "localhost", "password": "it's", "privileges": "acct.*:ALL"},
        {"name": "prometheus", "host": "localhost", "password": None, "privileges": "*.*:PROCESS"},
    ]
    changes = list(server.changes(users, ["acct"]))
    assert [change.shown for change in changes] == [
        "DROP DATABASE test",
        "CREATE DATABASE `acct`",
        "DROP USER ''@'localhost'",
        "ALTER USER 'slurm'@'localhost' IDENTIFIED BY its password",
        "GRANT ALL PRIVILEGES ON `acct`.* TO 'slurm'@'localhost'",
        "CREATE USER 'prometheus'@'localhost' IDENTIFIED VIA unix_socket",
        "GRANT PROCESS ON *.* TO 'prometheus'@'localhost'",
    ]
    assert "ALTER USER 'slurm'@'localhost' IDENTIFIED BY 'it''s'" in [change.statement for change in changes]
