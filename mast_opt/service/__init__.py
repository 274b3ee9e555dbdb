"""A live loop behind HTTP: what is acknowledged is in its log (extra ``serve``).

live       the loop in a thread: requests and reports in, a turn, the log, commands out
opening    a new log, and the state that a log begins with
requests   what clients send, and what of it is wrong
problems   errors as RFC 9457 has them
access     tokens, scopes, and how often somebody may ask
figures    metrics for Prometheus
routes     what there is under /v1
openapi    the same as a document
page       a page for operators
app        all of it together
"""
