"""One label from the same answers by five ways: in memory, in a store, by two commands and by the service."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner

from streamlabel import Tagger
from streamlabel.cli import main
from tagged_texts import tagged_texts

DATA = tagged_texts(200, 60)
YES = [*(DATA.texts[i] for i in DATA.rows["football"][:3]), "The football club won the match on Friday"]
NO = [DATA.texts[i] for i in range(8) if i not in DATA.rows["football"]]


def command(*arguments: object) -> None:
    result = CliRunner().invoke(main, [str(one) for one in arguments], prog_name="streamlabel")
    assert result.exit_code == 0, result.output


def test_the_way_in_does_not_matter(model: Path, made_once: Path, tmp_path: Path, client: Any) -> None:
    paths = {name: Path(shutil.copytree(made_once, tmp_path / name)) for name in ("store", "add-label", "import")}
    for name, texts in (("yes", YES), ("no", NO)):
        (tmp_path / f"{name}.txt").write_text("".join(f"{text}\n" for text in texts))
    rows = [{"text": text, "label": "football", "answer": "accept"} for text in YES]
    rows += [{"text": text, "label": "football", "answer": "reject"} for text in NO]
    export = tmp_path / "export.jsonl"
    export.write_text("".join(json.dumps({**row, "_input_hash": at}) + "\n" for at, row in enumerate(rows)))

    memory = Tagger().fit(DATA.texts, DATA.tags)
    memory.learn("football", yes=YES, no=NO)
    with Tagger.open(paths["store"], "a") as tagger:
        tagger.learn("football", yes=YES, no=NO)
    command("add-label", paths["add-label"], "football", "--yes", tmp_path / "yes.txt", "--no", tmp_path / "no.txt")
    command("import", paths["import"], export)
    assert client.post("/labels", json={"name": "football", "yes": YES, "no": NO}).status_code == 201

    expected = [dict(row)["football"] for row in memory.suggest(DATA.unseen, k=1000)]
    threshold, estimate = memory.classifier_.thresholds_[-1], memory.estimate("football")
    for path in (*paths.values(), model):
        tagger = Tagger.open(path)
        scores = [dict(row)["football"] for row in tagger.suggest(DATA.unseen, k=1000)]
        np.testing.assert_allclose(scores, expected, atol=1e-5, err_msg=str(path))
        np.testing.assert_allclose(tagger.classifier_.thresholds_[-1], threshold, atol=1e-5, err_msg=str(path))
        assert tagger.estimate("football").n_pool == estimate.n_pool
        np.testing.assert_allclose(tagger.estimate("football").rate, estimate.rate, atol=0.02)
        with Tagger.open(path, "a") as living:
            assert (living.learn_more("football", no=[DATA.unseen[0]]).n_no, len(NO)) == (len(NO) + 1, len(NO))
