"""systemd, a Dockerfile linter and the Kubernetes schemas accept the files in deploy/, which describe brokers
correctly.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

import gapless
from gapless.cli.exit_codes import BAD_INPUT
from gapless.runtime.address import split_address
from gapless.runtime.network_file import parse_network
from gapless.runtime.settings import RuntimeSettings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNIT = (DEPLOY / "gapless-broker@.service").read_text(encoding="utf-8")
CONTAINER = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
MANIFEST: dict[str, Any] = {
    document["kind"]: document
    for document in yaml.safe_load_all((DEPLOY / "kubernetes" / "gapless.yaml").read_text(encoding="utf-8"))
}


# ---- systemd --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="only systemd can judge a unit, and containers have none; where it is, as on Debian, this runs",
)
def test_systemd_takes_the_unit_and_finds_little_exposed(tmp_path: Path) -> None:
    program = tmp_path / "gapless"
    program.write_text("#!/bin/sh\n", encoding="utf-8")
    program.chmod(0o755)
    unit = tmp_path / "gapless-broker@b0.service"
    user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
    text = UNIT.replace("/opt/gapless/bin/gapless", str(program))
    unit.write_text(re.sub(r"(User|Group)=gapless", rf"\1={user}", text), encoding="utf-8")
    verify = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)]
    completed = subprocess.run(verify, capture_output=True, text=True, timeout=60, check=False)
    assert (completed.returncode, completed.stdout + completed.stderr) == (0, "")
    unit.write_text(UNIT.replace("/opt/gapless/bin/gapless", str(program)), encoding="utf-8")
    offline = ["systemd-analyze", "security", "--offline=true", "--threshold=25", "--no-pager", str(unit)]
    completed = subprocess.run(offline, capture_output=True, text=True, timeout=60, check=False)
    assert completed.returncode == 0, completed.stdout[-500:]


def test_a_broker_under_systemd_can_write_the_data_directory_that_the_documents_show() -> None:
    """With `ProtectSystem=strict`, a broker can write only to the directories that the unit names."""
    page = (ROOT / "docs" / "OPERATING.md").read_text(encoding="utf-8")
    unit = dict(line.split("=", 1) for line in UNIT.splitlines() if re.match(r"[A-Z]\w+=", line))
    assert unit["ProtectSystem"] == "strict"
    shown = re.findall(r'^name = "(\w+)"\naddress = .*\ndata = "(/\S+)"', page, re.MULTILINE)
    assert shown
    for broker, data in shown:
        assert data == f"/var/lib/{unit['StateDirectory'].replace('%i', broker)}"
    for kind in ("State", "Logs"):
        assert unit[f"{kind}DirectoryMode"] == "0700"


def test_the_unit_waits_longer_than_a_broker_needs_to_leave() -> None:
    patience = re.search(r"TimeoutStopSec=(\d+)", UNIT)
    assert patience is not None
    assert int(patience[1]) * 1000 > 2 * RuntimeSettings().drain_ms
    assert f"RestartPreventExitStatus={BAD_INPUT}" in UNIT
    assert "ExecReload=/bin/kill -HUP $MAINPID" in UNIT


# ---- the container --------------------------------------------------------------------------------------------


def test_a_linter_accepts_the_container_file() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    completed = subprocess.run(
        [hadolint, DEPLOY / "Dockerfile"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (completed.returncode, completed.stdout) == (0, "")


def test_the_container_needs_no_network_and_no_root() -> None:
    assert f"--no-index --find-links=/wheels 'gapless[broker]=={gapless.__version__}'" in CONTAINER
    assert MANIFEST["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]["image"].endswith(gapless.__version__)
    assert re.search(r"^USER 10001:10001$", CONTAINER, re.MULTILINE)
    assert "USER" not in CONTAINER.split("USER 10001:10001")[1]


def test_the_wheel_is_built_and_runs_without_the_checkout(tmp_path: Path) -> None:
    """The test follows the container's steps: it installs the wheel without a network."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(tmp_path / "dist"), str(ROOT)]
    subprocess.run(build, check=True, timeout=200, capture_output=True)
    where = tmp_path / "site"
    install = [
        *pip,
        "install",
        "--no-deps",
        "--no-index",
        "--find-links",
        str(tmp_path / "dist"),
        "--target",
        str(where),
    ]
    subprocess.run([*install, "gapless"], check=True, timeout=200, capture_output=True)
    program = "import gapless, gapless.cli.main; print(gapless.__file__); gapless.cli.main.run(['security', '--help'])"
    completed = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(where)},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.startswith(str(where))
    assert "Certificates and users" in completed.stdout


# ---- Kubernetes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", MANIFEST)
def test_kubernetes_takes_the_manifest(kind: str) -> None:
    kubernetes_validate.validate(MANIFEST[kind], "1.33", strict=True)


def test_the_manifest_is_of_one_piece() -> None:
    config = parse_network(MANIFEST["ConfigMap"]["data"]["network.toml"])
    stateful = MANIFEST["StatefulSet"]["spec"]
    pod, service = stateful["template"]["spec"], MANIFEST["Service"]
    container = pod["containers"][0]
    name = MANIFEST["StatefulSet"]["metadata"]["name"]
    assert [entry.name for entry in config.brokers] == [f"{name}-{number}" for number in range(stateful["replicas"])]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for entry in config.brokers:
        assert split_address(entry.address) == (f"{entry.name}.{service['metadata']['name']}", ports["gapless"])
        assert split_address(entry.listen)[1] == ports["gapless"]
        assert split_address(entry.http)[1] == ports["https"]
    assert stateful["serviceName"] == service["metadata"]["name"]
    assert service["spec"]["publishNotReadyAddresses"]
    assert stateful["podManagementPolicy"] == "Parallel"
    assert MANIFEST["PodDisruptionBudget"]["spec"]["maxUnavailable"] == config.network.f
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounts.keys() == {volume["name"] for volume in pod["volumes"]}
    assert config.security is not None
    files = config.security.files("gapless-0")
    assert all(any(path.startswith(mount + "/") for mount in mounts.values()) for path in files.values())
    assert f"{mounts['network']}/network.toml" in container["args"]
    assert container["readinessProbe"]["httpGet"] == {"path": "/healthz", "port": "https", "scheme": "HTTPS"}
    assert "httpGet" not in container["livenessProbe"]
    assert pod["securityContext"]["runAsNonRoot"]
    assert int(re.search(r"USER (\d+)", CONTAINER)[1]) == pod["securityContext"]["runAsUser"]  # type: ignore[index]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert pod["terminationGracePeriodSeconds"] * 1000 > 2 * RuntimeSettings().drain_ms
