"""The manifests for Kubernetes: valid by its own schemas, of one piece, and with options and files that there are."""

import os
import re
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml

from a2c_smcp.server.cluster.nats_setup import make_files, write_files
from tests.forked import shared
from tests.nats_server import free_ports, nats_binary

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns at its import, of how it finds its schemas
    import kubernetes_validate  # type: ignore[import-untyped]

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"
#: The names under which the NATS servers of the StatefulSet reach each other.
NODES = tuple(f"a2c-nats-{number}.a2c-nats" for number in range(3))


def manifests(name: str) -> list[dict[str, Any]]:
    return [each for each in yaml.safe_load_all((FOLDER / name).read_text("utf-8")) if each]


SERVER, NATS = manifests("server.yaml"), manifests("nats.yaml")


def the(kind: str, among: list[dict[str, Any]]) -> Any:
    (found,) = [each for each in among if each["kind"] == kind]
    return found


def pod(manifest: Any) -> Any:
    return manifest["spec"]["template"]["spec"]


@pytest.mark.parametrize("manifest", [*SERVER, *NATS], ids=lambda each: f"{each['kind']} {each['metadata']['name']}")
def test_kubernetes_takes_the_manifest(manifest: dict[str, Any]) -> None:
    kubernetes_validate.validate(manifest, "1.34", strict=True)


def test_what_selects_pods_finds_them() -> None:
    for among, kind in ((SERVER, "Deployment"), (NATS, "StatefulSet")):
        labels = the(kind, among)["spec"]["template"]["metadata"]["labels"]
        assert the("Service", among)["spec"]["selector"] == labels
        assert the("PodDisruptionBudget", among)["spec"]["selector"]["matchLabels"] == labels
        assert the("NetworkPolicy", among)["spec"]["podSelector"]["matchLabels"] == labels
    scaled = the("HorizontalPodAutoscaler", SERVER)["spec"]["scaleTargetRef"]
    assert (scaled["kind"], scaled["name"]) == ("Deployment", the("Deployment", SERVER)["metadata"]["name"])


def test_the_server_has_the_options_the_files_and_the_time_that_it_needs() -> None:
    (container,) = pod(the("Deployment", SERVER))["containers"]
    words = container["args"]
    said = shared().run_text(*words, "--help", env=dict(os.environ))
    assert said.returncode == 0, said.stderr
    options = dict(word.removeprefix("--").split("=", 1) for word in words[1:])
    (volume,) = pod(the("Deployment", SERVER))["volumes"]
    mounted = {f"/run/a2c/{item['path']}" for item in volume["secret"]["items"]}
    assert {options["keys"], options["nats-creds"], options["cluster-key-file"]} == mounted
    assert set(re.findall(r"nats://([\w.-]+):4222", options["nats"])) == set(NODES)
    assert pod(the("Deployment", SERVER))["terminationGracePeriodSeconds"] >= int(options["drain"]) + 10
    assert container["ports"][0]["containerPort"] == int(options["port"])


def test_nats_takes_the_configuration_of_the_config_map(tmp_path: Path) -> None:
    config = the("ConfigMap", NATS)["data"]["nats.conf"]
    client, route, monitor = free_ports(3)
    for old, new in (
        ("port: 4222", f"listen: 127.0.0.1:{client}"),
        ("port: 6222", f"listen: 127.0.0.1:{route}"),
        ("0.0.0.0:8222", f"127.0.0.1:{monitor}"),
        ("/data", str(tmp_path / "data")),
    ):
        assert old in config
        config = config.replace(old, new)
    files = make_files("a2c", NODES)
    write_files(tmp_path / "keys", files)
    (tmp_path / "nats.conf").write_text(config)
    command = [nats_binary(), "-t", "-c", str(tmp_path / "nats.conf")]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, env={"POD_NAME": "a2c-nats-0"})
    assert said.returncode == 0, said.stderr
    assert re.findall(r"@([\w.-]+):6222", (tmp_path / "keys" / "cluster.conf").read_text()) == list(NODES)
    # What the secrets of the page hold is what nats-setup makes.
    assert {"auth.conf", "cluster.conf", "server.creds", "cluster.key"} <= set(files)
