"""A JSON service over a stored tagger: labels for texts, reasons, and new labels while it answers.

===============  ======================================================================================
`live_tagger`    the tagger as it is served: one whole immutable view, swapped whole; the one writer
`routes`         what a body may hold, and what each route answers
`access`         who may ask (names of the host, token), what is not answered, and with which status
`app`            the routes as a Starlette application; the only import of starlette
`server`         a socket that is bound first, and uvicorn on it; the only import of uvicorn
===============  ======================================================================================
"""
