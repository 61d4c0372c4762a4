"""What is counted and logged about requests: metrics for Prometheus, and one line of JSON a request if it is asked for.

Neither has a text, the name of a label, or a path as it was asked: only templates of routes, methods and statuses, and
so there is a bounded number of series.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, TextIO

from streamlabel.errors import MissingExtraError
from streamlabel.serve.live_tagger import LivingTagger
from streamlabel.serve.requests import Reply

try:
    import prometheus_client
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
except ImportError:
    raise MissingExtraError("prometheus-client", "serve", "the service") from None

access = logging.getLogger("streamlabel.serve.access")
OTHER = "other"  # a path or a method that the service does not know
METHODS = ("GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT")
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")


def log_requests(stream: TextIO) -> None:
    """Let the log of requests go to a stream as it is, one line of JSON each."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(message)s"))
    access.handlers, access.propagate = [handler], False
    access.setLevel(logging.INFO)


class Telemetry:
    """The metrics of one service, in a registry of its own, and its log of requests."""

    def __init__(self, *, log: bool = False) -> None:
        self._log, self._registry = log, CollectorRegistry()
        by_route, by_model = ("model", "route", "method", "status"), ("model",)
        self._requests = Histogram(
            "streamlabel_http_request_seconds", "Seconds from the head of a request to the last byte of its answer.",
            by_route, registry=self._registry, buckets=SECONDS,
        )  # fmt: skip
        self._bytes = Counter("streamlabel_http_response_bytes", "Bytes of answers.", by_model, registry=self._registry)
        self._learn = Histogram(
            "streamlabel_learn_seconds", "Seconds that learning a label, or a batch of them, took.", by_model,
            registry=self._registry, buckets=SECONDS,
        )  # fmt: skip
        self._under_way = Gauge("streamlabel_http_requests_under_way", "Requests under way.", registry=self._registry)
        gauges = (
            ("revision", "The revision that answers."), ("n_labels", "Labels."), ("pool_texts", "Texts kept."),
            ("lost_events", "Events of Label Studio that could not be written."),
        )  # fmt: skip
        self._of_model = {
            name: Gauge(f"streamlabel_{name}", about, by_model, registry=self._registry) for name, about in gauges
        }
        self._ready = Gauge(
            "streamlabel_ready", "1 if the newest revision can be read, else 0.", by_model, registry=self._registry
        )
        for collector in (prometheus_client.ProcessCollector, prometheus_client.GCCollector):
            collector(registry=self._registry)

    def watch(self, name: str, living: LivingTagger) -> None:
        """Show the revision, the labels and the pool of a model."""
        self._of_model["revision"].labels(name).set_function(lambda: living.view().revision)
        self._of_model["n_labels"].labels(name).set_function(lambda: len(living.view().labels))
        self._of_model["pool_texts"].labels(name).set_function(lambda: len(living.recent))
        self._of_model["lost_events"].labels(name).set_function(lambda: living.n_lost)
        self._ready.labels(name).set_function(lambda: not living.problem)

    def began(self) -> None:
        self._under_way.inc()

    def ended(self, about: RequestFacts, seconds: float) -> None:
        """Count a request that is answered, and log it."""
        self._under_way.dec()
        method = about.method if about.method in METHODS else OTHER
        self._requests.labels(about.model, about.route, method, about.status).observe(seconds)
        self._bytes.labels(about.model).inc(about.n_bytes)
        if about.learned is not None:
            self._learn.labels(about.model).observe(about.learned)
        if self._log:
            line = {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"), "method": method, "model": about.model,
                "route": about.route, "status": about.status, "ms": round(1000 * seconds, 2), "bytes": about.n_bytes,
                "token": about.token, "id": about.id,
            }  # fmt: skip
            access.info("%s", json.dumps(line, ensure_ascii=False))

    def metrics(self) -> Reply:
        """Answer with the metrics as Prometheus reads them."""
        content = prometheus_client.generate_latest(self._registry)
        return Reply(content, kind=prometheus_client.CONTENT_TYPE_LATEST)


class RequestFacts:
    """What is told about one request; it becomes known while the request goes through the service."""

    def __init__(self, method: str, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self.method, self.route, self.model, self.status, self.n_bytes = method, OTHER, "", 0, 0
        self.token: str | None = None
        self.learned: float | None = None
        given = next((value for name, value in headers if name == b"x-request-id"), b"")
        self.id = given.decode() if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)

    def see(self, message: Any) -> None:
        """Take in a message of the answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self.n_bytes += len(message.get("body", b""))
