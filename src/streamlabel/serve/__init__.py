"""A service over stored models, in JSON and as web pages: labels, reasons, and new labels while it answers.

===============  ======================================================================================
`live_tagger`    the tagger as it is served: one whole immutable view, swapped whole; the one writer
`requests`       types of routes, of what a request may hold and of what an answer holds; the only import of msgspec
`routes`         what each route answers
`access`         who may ask (names of the host, tokens with scopes), what is not answered, and with which status
`openapi`        the service described: an OpenAPI document of the types
`page_data`      what each web page shows, as plain data, and what its form does
`pages`          how pages are shown, at /ui: templates, forms, static files; the only import of jinja2
`telemetry`      metrics and the log of requests; the only import of prometheus-client
`app`            the routes as a Starlette application; the only import of starlette
`label_studio`   a machine learning back end for Label Studio; `ledger`: what people answered there
`annif`          suggestions in the shape of Annif
`server`         a socket that is bound first, and uvicorn on it; the only import of uvicorn
===============  ======================================================================================
"""
