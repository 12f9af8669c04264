"""Users files: an invalid one is rejected with the place of the error, and the error repeats no secret."""

from __future__ import annotations

import shutil
from random import Random

from gapless.errors import ConfigError
from gapless.security.users_file import load_users
from tests.fuzz.changes import changed_text
from tests.fuzz.target import Target, Unexpected, scratch_folder

SECRET = "tr0ub4dor-and-3"
_HASH = f"sha256${'0' * 64}"
_FILE = f"""\
revoked = ["0A3F"]

[limits]
connections = 100
publications_per_s = 5000

[broker_limits]
connections_per_s = 200

[[roles]]
name = "shopper"
subscribe = ["topic LIKE '${{user}}/%'"]
deny_subscribe = ["topic = 'secret'"]

[[users]]
name = "ann"
certificate = true
roles = ["shopper"]
tokens = ["{_HASH}", {{hash = "{_HASH}", expires = 2027-01-31T00:00:00Z}}]
publish = ["topic LIKE 'shop/%'"]
subscribe = ["topic LIKE 'shop/%'", "topic = 'news'"]
outside = "narrow"
history = true

[users.limits]
publications_per_s = 1.5

[[users]]
name = "bob"
"""
KNOWN = (
    "[limits]", "[broker_limits]", "[[users]]", "[users]", "[users.limits]", "[signed_tokens]", "name", "tokens",
    "[[roles]]", "roles", "deny_publish", "deny_subscribe", "${user}", "expires", "hash", "2027-01-31T00:00:00Z",
    "publish", "subscribe", "outside", "history", "named", "status", "operate", "disabled", "certificate", "revoked",
    "keys", "audience", "connections", '"ann"', '"bob"', '"a:b"', f'"{SECRET}"', f'["{SECRET}"]', f'["{_HASH}"]',
    f'"ann:{SECRET}"', '"scrypt$14$8$1$$"', '"sha256$00"',
    '["TRUE"]', '["x <"]', '["(" ]', '"refuse"', "=", ",", "[", "]", "{", "}",
    "0", "1", "-1", "1e400", "nan", "inf", "true", "false", "99999999999999999999", "1979-05-27", '""', '"', "'''",
    "#", "\n", " ", ".", '"\\u0000"',
)  # fmt: skip


class UsersFiles(Target):
    """Inputs are texts of users files, in UTF-8."""

    name = "users-files"
    about = "the file of users"

    def __init__(self) -> None:
        self._folder = scratch_folder()
        self._file = self._folder / "users.toml"

    def draw(self, dice: Random) -> bytes:
        return _FILE.encode()

    def change(self, data: bytes, dice: Random) -> bytes:
        return changed_text(data.decode(errors="replace"), dice, KNOWN).encode(errors="replace")

    def run(self, data: bytes) -> str:
        self._file.write_bytes(data)
        try:
            users = load_users(self._file)
        except ConfigError as error:
            if ".tokens" in str(error) and SECRET in str(error):
                raise Unexpected("the error tells a secret") from None
            return "refused" if str(error) else "refused without a reason"
        for user in users.by_name.values():
            if user.may_publish.is_nothing != (not user.publish) or "sha256" in repr(user):
                raise Unexpected(f"{user!r} may something else than the file says, or tells its secrets")
            users.limits_of(user.name)
        return "taken"

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
