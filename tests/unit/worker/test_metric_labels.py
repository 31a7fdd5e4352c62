"""What metrics call git hosts and clusters: never two of them the same, never with a credential."""

from __future__ import annotations

from handler.config.git_settings import Repository, SecretRef
from handler.config.settings import Cluster, Eks, Settings, Target
from handler.feedback.prometheus import TargetLabels
from handler.worker.metric_labels import places

URL = "https://ada:token@Git.example.com:8443/acme/shop.git"


def called(*clusters: Cluster) -> list[str]:
    targets = tuple(Target(f"t{number}", Repository(URL), ("shop",), cluster=cluster) for number, cluster in enumerate(clusters))
    found = places(Settings(targets=targets))
    assert {place.host for place in found.values()} == {"git.example.com:8443"}
    return [found[target.name].cluster for target in targets]


def test_the_cluster_label_of_a_metric_is_read_from_the_configuration() -> None:
    clusters = (
        Cluster(),
        Cluster(context="prod"),
        Cluster(in_cluster=True),
        Cluster(eks=Eks("main")),
        Cluster(server="https://10.0.0.1:6443"),
        Cluster(kubeconfig=SecretRef(file="/etc/west")),
        Cluster(kubeconfig=SecretRef(env="EAST")),
    )
    names = [
        "default",
        "prod",
        "in-cluster",
        "main",
        "https://10.0.0.1:6443",
        "kubeconfig /etc/west",
        "kubeconfig environment variable EAST",
    ]
    assert called(*clusters) == names


def test_cluster_labels_of_metrics_are_unique() -> None:
    one, other = Cluster(kubeconfig=SecretRef(file="/a"), context="prod"), Cluster(kubeconfig=SecretRef(file="/b"), context="prod")
    assert called(one, other, one) == ["prod", "kubeconfig /b, context prod", "prod"]
    pinned = [Cluster(context="prod"), *(Cluster(context="prod", server=f"https://10.0.0.{number}") for number in (1, 2))]
    assert called(*pinned) == ["prod", "context prod", "context prod#2"]


def test_metric_labels_of_a_target_name_its_repository_and_cluster() -> None:
    assert places(Settings(targets=(Target("shop", Repository("/srv/shop"), ("shop",)),))) == {"shop": TargetLabels("/srv/shop", "default")}
