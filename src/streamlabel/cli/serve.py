"""``streamlabel serve``: a model as a JSON service."""

from __future__ import annotations

from pathlib import Path

import click

from streamlabel.cli.models import actor_option, model_argument
from streamlabel.cli.options import FileOptions, text_rows
from streamlabel.cli.output import json_option, plural, write
from streamlabel.tagging.tagger import Tagger


@click.command()
@model_argument
@click.option("--host", default="127.0.0.1", show_default=True, metavar="NAME", help="Name or address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes one that is free."
)
@click.option("--read-only", is_flag=True, help="Answer, and change nothing.")
@click.option(
    "--in-memory", is_flag=True, help="Read the classifiers instead of mapping their files, which may then be replaced."
)
@click.option("--pool", metavar="FILE", help="Texts as they come, by which new labels are judged; kept in memory.")
@click.option(
    "--remember", type=click.IntRange(100, 100_000), metavar="N",
    help="Keep the newest N texts that are sent to /suggest, in memory only: they join the pool  [default: none]",
)  # fmt: skip
@click.option(
    "--token-file", type=click.Path(path_type=Path), metavar="FILE",
    help="Only who sends 'Authorization: Bearer' and the token in FILE is answered.",
)  # fmt: skip
@click.option(
    "--allow-host", "allowed", multiple=True, metavar="NAME",
    help="Also answer requests to this name, which a proxy passes on; may be repeated.",
)  # fmt: skip
@actor_option
@json_option
def serve(
    model: Path, host: str, port: int, read_only: bool, in_memory: bool, pool: str | None, remember: int | None,
    token_file: Path | None, allowed: tuple[str, ...], actor: str, as_json: bool,
) -> None:  # fmt: skip
    """Answer over HTTP, in JSON, from MODEL: suggest, explain, and learn labels.

    A new label is on the disk when it is answered; other requests are answered meanwhile. An address that other
    machines can reach needs --token-file. Nothing is encrypted: put a proxy with TLS in front, and then give
    --token-file, too, and --allow-host with the name that the proxy is asked by. Ctrl-C ends it.

    With --remember, whoever may ask can be shown texts that others sent, as questions about a label.

    \b
    GET    /                        these routes
    GET    /health                  whether all is well, the revision, how many labels
    GET    /labels                  every label: id, name, answers, threshold
    POST   /suggest                 labels for texts: texts, k
    POST   /explain                 why a text got its score: text, label, words
    POST   /labels                  learn a label: name, about, yes, no, pool
    POST   /labels/{label}/answers  learn it further: text, yes (or answers), asked
    GET    /labels/{label}/next     the texts to ask about next
    POST   /labels/{label}/next     the same: n, pool
    GET    /labels/{label}          one label, and how good it is thought to be
    DELETE /labels/{id}             take a label out
    POST   /rollback                go back: revision
    """
    from streamlabel.serve.access import Gate, host_name, is_loopback, names_of, read_token
    from streamlabel.serve.app import create_app
    from streamlabel.serve.live_tagger import LivingTagger, RecentTexts
    from streamlabel.serve.server import address_of, listen, make_server, run_until_signal, url_of

    token = None if token_file is None else read_token(token_file)
    address = address_of(host)
    if token is None and not is_loopback(address):
        raise click.UsageError(f"other machines can reach {host}; give --token-file, or --host 127.0.0.1")
    names = names_of(host, address, [host_name(name) for name in allowed])
    texts = [] if pool is None else [row.text for row in text_rows(pool, FileOptions())]
    recent = RecentTexts(texts, remember or 0)
    living = LivingTagger(Tagger.open(model, mapped=not in_memory), actor=actor, read_only=read_only, recent=recent)
    server = make_server(create_app(living, Gate(names, token)))
    listener = listen(address, port)
    view = living.view()
    data = {
        "url": url_of(listener),
        "model": str(model),
        "revision": view.revision,
        "n_labels": len(view.labels),
        "read_only": read_only,
        "n_pool": len(recent),
        "remembers": recent.most,
    }
    size = f"{plural(len(view.labels), 'label')}, revision {view.revision}"
    kept = f"; a pool of {plural(len(recent), 'text')}" if len(recent) else ""
    kept += f"; remembers the newest {plural(recent.most, 'text')} that it is sent, in memory" if recent.most else ""
    text = f"{data['url']} serves {model}: {size}{kept} (Ctrl-C ends it)"
    run_until_signal(server, listener, lambda: write(data, as_json=as_json, text=lambda: text))
