"""The published traces that windtunnel knows: files, sizes, checksums, licences, citations.

Sizes and SHA-256 are those of the unpacked content. Where the files are on this machine, and how
they get here, is the subject of `windtunnel.traces.registry`.
"""

from __future__ import annotations

from dataclasses import dataclass

from windtunnel.errors import SpecError

_CLUSTERDATA = (
    "https://raw.githubusercontent.com/alibaba/clusterdata/master/cluster-trace-gpu-v2023/csv"
)
_SIA = "https://raw.githubusercontent.com/siasosp23/artifacts/HEAD/sia-simulator/traces"


@dataclass(frozen=True)
class PublishedFile:
    """One file of a published trace.

    Attributes:
        role: ``jobs`` for the reader's path, else the name of the reader's option.
        url: where it is published.
        size: bytes.
        sha256: of its content, unpacked, hexadecimal.
        mirror: its place below ``WINDTUNNEL_DATA`` and below the cache folder.
    """

    role: str
    url: str
    size: int
    sha256: str
    mirror: str


@dataclass(frozen=True)
class PublishedTrace:
    """A trace that others published.

    Attributes:
        name: what users type (``openb``, ``openb:gpuspec33``).
        title: one line about it.
        licence: the data's licence, as the source states it.
        citation: what to cite.
        reader: name of its reader.
        files: its files; the first is the jobs.
        cluster: preset that describes its cluster where no file of it does.
    """

    name: str
    title: str
    licence: str
    citation: str
    reader: str
    files: tuple[PublishedFile, ...]
    cluster: str | None = None


_PHILLY = PublishedTrace(
    name="philly",
    title="Microsoft Philly 2017, 82,247 GPU jobs (Sia's derived table)",
    licence="CC BY 4.0 (msr-fiddle/philly-traces); the derived table states none",
    citation="Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN Training "
    "Workloads, USENIX ATC 2019",
    reader="philly",
    files=(
        PublishedFile(
            "jobs",
            f"{_SIA}/philly.csv",
            3_444_496,
            "ebffb3dd1589bdf4e7bcd74496201c5ded1d557d498ee14f560463f37ec353da",
            "philly/philly_sia.csv",
        ),
    ),
    cluster="philly",
)
_OPENB_NODES = PublishedFile(
    "nodes",
    f"{_CLUSTERDATA}/openb_node_list_all_node.csv",
    52_287,
    "5a85c2af79c66a1efff8bbcbda430400aae56d8431370d738480967e1a9c6b15",
    "openb/openb_node_list_all_node.csv",
)
#: Lists of pods: variant -> bytes, SHA-256.
_OPENB_PODS = {
    "default": (
        575_468,
        "1ee7ed79c27a3b0861cda8ddba86a004c6aba904caafa329a76ae93ca63834a8",
    ),
    "cpu0": (
        499_765,
        "1bc3fd9ee5c1468ccd018f624d9222746e08d59f963f66b925804734271c0eaa",
    ),
    "cpu050": (
        525_811,
        "747f43247bffc2b0bb081d7f61f0705ca8d390dafc0b647e642c92f3baf3ba1e",
    ),
    "cpu100": (
        554_709,
        "bec1c33fbdde61fd463877534ec79b393aec73e1cbb22d55fab9f166ac480982",
    ),
    "cpu235": (
        651_171,
        "87bebd4d012faa8305ce1fd82737f51cf03361aac28b75d42e34aa656d7f4ee0",
    ),
    "cpu300": (
        710_698,
        "76528825f40ee662cb098b3b6e683c1efd9f87a0c8af7e628df1f32c639636d1",
    ),
    "gpushare40": (
        572_662,
        "d83ce79a4eb6987524bedbb0c65e41aed3a36bf6c1b78b86234c3687a07e1d40",
    ),
    "gpushare80": (
        563_740,
        "88b6649369ced40d0fde287d2498ea61ff4b05fccba8bdc95daf6042f2f8431e",
    ),
    "gpuspec05": (
        577_176,
        "8f1c0ef7e4e511e982bd2818898ba22ee6d273bf5fce124b7ace285b5928cf4e",
    ),
    "gpuspec20": (
        582_612,
        "6b9b89ab8913c1c074e994e98f548cf1a872fc5f76f2442ca8cd514a478b00a9",
    ),
    "gpuspec33": (
        587_467,
        "eca4f746db1e5b25864ad021b55ece3943e101a3ebd4574d09dcb95c46117652",
    ),
    "multigpu20": (
        271_530,
        "d9ec6f6c74fb980cc0b81239470c6353fceea077ea9abd610003b604c7cc2b01",
    ),
    "multigpu40": (
        286_202,
        "32c9e8731ca07ef96108aa65f2a289bb9aacb47f642ed9e3789f99b242df60eb",
    ),
}
_VARIANT_TITLES = {
    "cpu": "CPU-only pods {:.3g} % of all",
    "gpushare": "fractional pods {:g} % of the GPUs asked for",
    "gpuspec": "{:g} % of GPU pods name a GPU type",
    "multigpu": "multi-GPU pods {:g} % of the GPUs asked for; no times",
}
_DLRM = PublishedTrace(
    name="dlrm",
    title="Alibaba 2025, 23,871 instances of disaggregated DLRM serving (Prism)",
    licence="none in its folder; the repository's v2020 folder carries CC BY 4.0",
    citation="Yang et al., GPU-Disaggregated Serving for Deep Learning Recommendation Models at "
    "Scale, USENIX NSDI 2025",
    reader="dlrm",
    files=(
        PublishedFile(
            "jobs",
            "https://raw.githubusercontent.com/alibaba/clusterdata/master/"
            "cluster-trace-gpu-v2025/disaggregated_DLRM_trace.csv",
            2_118_900,
            "fb17bc4b3f412d5280f70f04a1bdf2adfc4429d1e61237a5b106e86206414295",
            "alibaba_v2025/disaggregated_DLRM_trace.csv",
        ),
    ),
)

_MORPHLING = (
    "https://raw.githubusercontent.com/AlibabaPAI/reconfigurable-dl-scheduler/"
    "80e85248c65c1ae231e2cf8bbfe0918b7af45c98"
)
#: Workloads: variant -> folder, bytes, SHA-256, title.
_MORPHLING_FILES = {
    "base": (
        "simulator/workloads/workload-base.csv",
        20_979,
        "1ff1aa98a914ddf44b7ac693d3913584c25d14d9f386a56a16919c1c5bce3cda",
        "406 training jobs with execution plans",
    ),
    "bp": (
        "benchmark/workloads/workload-bp.csv",
        20_974,
        "ba75d15d53d06fd50d6356f31a60c43e4bfb65a45e6da5650cdc0e913d048456",
        "base with other plans",
    ),
    "mt": (
        "benchmark/workloads/workload-mt.csv",
        21_209,
        "b3994fc9f4076bdfd5668de93212ca8d3ca749987d265416126a57581d9983e5",
        "base with 194 guaranteed jobs",
    ),
    "naive": (
        "simulator/workloads/naive.csv",
        598,
        "245913deb8bda454972b62deec3dc78279664e0c175ac8fa4d818fdebdb7c05a",
        "the first 10 jobs of base",
    ),
}


def _morphling(variant: str) -> PublishedTrace:
    path, size, sha256, title = _MORPHLING_FILES[variant]
    mirror = f"morphling/workloads/{path.rpartition('/')[2]}"
    return PublishedTrace(
        name=f"morphling:{variant}",
        title=f"Morphling 2025: {title}",
        licence="Apache-2.0 (AlibabaPAI/reconfigurable-dl-scheduler)",
        citation="Yuan et al., Morphling: Exploiting Job Reconfigurability for Deep Learning "
        "Cluster Scheduling, MLSys 2025",
        reader="morphling",
        files=(PublishedFile("jobs", f"{_MORPHLING}/{path}", size, sha256, mirror),),
        cluster="morphling",
    )


def _openb(variant: str) -> PublishedTrace:
    size, sha256 = _OPENB_PODS[variant]
    file = f"openb_pod_list_{variant}.csv"
    title = "Alibaba GPU cluster 2023, 8,152 pods on 6,212 GPUs (openb)"
    if variant != "default":
        kind = variant.rstrip("0123456789")
        digits = variant.removeprefix(kind)
        share = int(digits) / (10 if kind == "cpu" else 1)
        title = f"openb re-sampled: {_VARIANT_TITLES[kind].format(share)}"
    return PublishedTrace(
        name="openb" if variant == "default" else f"openb:{variant}",
        title=title,
        licence="none in its folder; the repository's v2020 folder carries CC BY 4.0",
        citation="Weng et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads with "
        "Fragmentation Gradient Descent, USENIX ATC 2023",
        reader="openb",
        files=(
            PublishedFile("jobs", f"{_CLUSTERDATA}/{file}", size, sha256, f"openb/{file}"),
            _OPENB_NODES,
        ),
    )


#: Every published trace by name.
PUBLISHED: dict[str, PublishedTrace] = {
    trace.name: trace
    for trace in (
        *(_PHILLY, _DLRM),
        *(_openb(variant) for variant in _OPENB_PODS),
        *(_morphling(variant) for variant in _MORPHLING_FILES),
    )
}

_ZEUS = (
    "https://raw.githubusercontent.com/ml-energy/zeus/"
    "75a8b9398034eb9baf74ca0a830c2c31bcce52cd/examples/research_reproducibility/zeus_nsdi23/trace"
)
#: Measurements of training runs: role -> bytes, SHA-256.
_ZEUS_FILES = {
    "train": (186_977, "076b35615349ee624403006e5ad67fd9ebda92af690c7750f8bb0c2ab92c0cf4"),
    "v100": (32_534, "f0b066dd1a451bd78f730e001ac3a7c411979bc7f0846f12c1a9fb604aa90628"),
    "a40": (29_641, "f4ec111fc9b06b353182faab9160ecb1236a486b2741ed93383b80497332031e"),
    "p100": (18_163, "158e9a6784b6e2d26710529b132cf173b227dc8688f4931c19a637bce2b7503b"),
    "rtx6000": (27_704, "edccecc7f8b7a6102962b03f0f37767dd9cd2f03469ebccadc9805e82901bdc4"),
}


def _zeus_file(role: str) -> PublishedFile:
    size, sha256 = _ZEUS_FILES[role]
    file = "summary_train.csv" if role == "train" else f"summary_power_{role}.csv"
    return PublishedFile(role, f"{_ZEUS}/{file}", size, sha256, f"zeus/{file}")


#: Published measurements that are no list of jobs, by name; `windtunnel.energy` reads them.
MEASUREMENTS: dict[str, PublishedTrace] = {
    "zeus": PublishedTrace(
        name="zeus",
        title="Zeus 2023, training runs of 6 workloads on 4 GPUs (`windtunnel energy`)",
        licence="Apache-2.0 (the repository; none stated for the data)",
        citation="You, Chung, Chowdhury, Zeus: Understanding and Optimizing GPU Energy "
        "Consumption of DNN Training, USENIX NSDI 2023",
        reader="energy",
        files=tuple(_zeus_file(role) for role in _ZEUS_FILES),
    )
}


def published(name: str) -> PublishedTrace:
    """Return a published trace, or published measurements, by name; ``openb:default`` is ``openb``.

    Raises:
        SpecError: there is none of this name; the nearest is suggested.
    """
    key = name.lower().removesuffix(":default")
    known = {**PUBLISHED, **MEASUREMENTS}
    if key not in known:
        raise SpecError.unknown("trace", name, known)
    return known[key]
