"""The commands that start and administer brokers: `gapless up`, `broker`, `status`, `doctor`, `client`, `network`."""

from pathlib import Path

import click

from gapless.cli.command_group import CommandGroup
from gapless.cli.exit_codes import NETWORK_EPILOG
from gapless.cli.shared_options import (
    PATH,
    credentials_option,
    json_option,
    local,
    network_file_option,
    seconds_option,
    url_option,
)  # fmt: skip

__all__ = ["broker", "clients", "doctor", "networks", "status", "up"]

clients = CommandGroup(
    epilog=NETWORK_EPILOG,
    help="Manage the clients of a live network.\n\ngapless status shows the clients that lag most.",
)
networks = CommandGroup(
    epilog=NETWORK_EPILOG,
    help="Manage the brokers of a live network.\n\ngapless doctor names the brokers that others wait for.",
)

BROKERS_MAX = 1000
"""The maximum number of brokers of `up`. Each health port is 1,000 above the broker's own port, so more do not fit."""


@click.command(epilog=NETWORK_EPILOG)
@click.option(
    "--brokers", metavar="N", type=click.IntRange(min=1, max=BROKERS_MAX), default=7, help="How many brokers."
)
@network_file_option
@click.option(
    "--f",
    metavar="N",
    type=click.IntRange(min=0),
    help="How many neighbouring brokers may fail; by default 1, or 0 for one or two brokers.",
)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(min=1, max=65535),
    default=7400,
    help="Port of the first broker; the others use the next ports. HTTP uses the ports 1,000 above.",
)
@click.option("--protocol", metavar="NAME", default="gapless", help="One of: gapless protocols.")
@click.option(
    "--trace",
    metavar="DIR",
    type=PATH,
    help="Make clients on this machine write their parts of a trace to this directory.",
)
@click.option("--logs", metavar="DIR", type=PATH, help="Write the brokers' logs to this directory.")
@click.option(
    "--data",
    metavar="DIR",
    type=PATH,
    help="Store data in this directory, so that events survive a stop of all brokers.",
)
@seconds_option
@click.option("--restart/--no-restart", default=True, help="Restart brokers that die.")
@click.option("--secure", is_flag=True, help="Use TLS, certificates and users.")
@click.option(
    "--security",
    metavar="DIR",
    type=PATH,
    default=Path("gapless-security"),
    help="Directory of the certificates; created if missing.",
)
def up(
    brokers: int,
    config: Path | None,
    f: int | None,
    port: int,
    protocol: str,
    trace: Path | None,
    logs: Path | None,
    data: Path | None,
    seconds: float | None,
    restart: bool,
    secure: bool,
    security: Path,
) -> int:
    """Start a whole network on this machine, for development.

    Example:  gapless up --brokers 3, and in other terminals

    gapless sub "topic = 'price'"

    gapless pub --event '{"topic": "price", "amount": 7}'
    """
    from gapless.cli.up import run_network

    return run_network(
        config, brokers, f=f, port=port, protocol=protocol, trace=trace, logs=logs, seconds=seconds, restart=restart,
        security=security if secure else None, data=data,
    )  # fmt: skip


@click.command(epilog=NETWORK_EPILOG)
@click.option("--config", metavar="FILE", type=PATH, required=True, help="The network's file, in TOML.")
@click.option("--name", metavar="NAME", required=True, help="The name of the broker to run.")
@click.option("--json", is_flag=True, help="Log JSON, one document per line.")
@click.option("--level", metavar="WORD", default="info", help="debug, info, warning or error.")
@click.option(
    "--trace",
    metavar="DIR",
    default="",
    help="Directory to which clients on this machine write their parts of a trace.",
)
@click.option("--parent", type=int, default=0, hidden=True)
def broker(config: Path, name: str, json: bool, level: str, trace: str, parent: int) -> int:
    """Run one broker of a network. SIGTERM stops it gracefully.

    Example:  gapless broker --config network.toml --name b3

    The file is the same on every host; docs/WIRE.md shows one.
    """
    from gapless.cli.broker import serve

    return serve(config, name, as_json=json, level=level, trace=trace, parent=parent)


@click.command(epilog="Exit codes: 0 all are up, 1 some are not up or wait for others, 64 no broker answers.")
@url_option
@network_file_option
@credentials_option
@json_option
def status(url: str, config: Path | None, credentials: Path | None, json: bool) -> int:
    """Show the state, links, clients and queues of each broker.

    Example:  gapless status --url gapless://10.0.0.1:7400
    """
    from gapless.cli.status import show_status

    return show_status(local(url, credentials), config, credentials, as_json=json)


@click.command(epilog="Exit codes: 0 no problem found, 1 problems found, 64 no broker answers.")
@url_option
@network_file_option
@credentials_option
@json_option
def doctor(url: str, config: Path | None, credentials: Path | None, json: bool) -> int:
    """Report what is wrong with a network, and how to repair it.

    Example:  gapless doctor --config network.toml
    """
    from gapless.cli.doctor import examine

    return examine(local(url, credentials), config, credentials, as_json=json)


@clients.command("end", epilog="Exit codes: 0 the session has ended, 1 there is no such session, 64 no broker answers.")
@click.argument("name", metavar="NAME", help="The client, as gapless status names it.")
@url_option
@network_file_option
@credentials_option
@json_option
def client_end(name: str, url: str, config: Path | None, credentials: Path | None, json: bool) -> int:
    """End the session of a client. Its subscriptions end, and it receives an error with the reason.

    Example:  gapless client end dashboard-1f2e3d4c
    """
    from gapless.cli.client_end import end_client

    return end_client(name, local(url, credentials), config, credentials, as_json=json)


@clients.command("delete-events", epilog="Exit codes: 0 deleted, 1 nothing to delete, 64 no broker answers.")
@click.argument("name", metavar="NAME", help="The publisher, with or without the suffix that makes its name unique.")
@url_option
@network_file_option
@credentials_option
@json_option
def client_delete_events(name: str, url: str, config: Path | None, credentials: Path | None, json: bool) -> int:
    """Delete all published events of a client from history.

    Readers learn which numbers were deleted.

    Example:  gapless client delete-events sensor-17
    """
    from gapless.cli.client_delete_events import delete_events

    return delete_events(name, local(url, credentials), config, credentials, as_json=json)


@networks.command(
    "forget", epilog="Exit codes: 0 the other brokers continue, 1 the broker is up or unknown, 64 no broker answers."
)
@click.argument("name", metavar="BROKER", help="The broker, as the network's file names it.")
@url_option
@network_file_option
@credentials_option
@json_option
def network_forget(name: str, url: str, config: Path | None, credentials: Path | None, json: bool) -> int:
    """Declare that a broker will not return. The others stop waiting for it, and report events that only it had as
    lost.

    Example:  gapless network forget b3 --config network.toml
    """
    from gapless.cli.network_forget import forget_broker

    return forget_broker(name, local(url, credentials), config, credentials, as_json=json)
