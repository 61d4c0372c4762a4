"""A JSON service over a stored tagger: labels for texts, reasons, and new labels while it answers.

===============  ======================================================================================
`living`         the tagger as it is served: one whole immutable view, swapped whole; the one writer
`mark`           which model is in the directory, and which revision of it
`requests`       what a body may hold, and how much of it
`answers`        the routes: what each of them says
`refusals`       what is not answered, and with which status
`gate`           who may ask: names of the host, token
`app`            the routes as a Starlette application; the only import of starlette
`server`         a socket that is bound first, and uvicorn on it; the only import of uvicorn
===============  ======================================================================================
"""
