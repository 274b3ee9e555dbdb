"""A live loop behind HTTP: what is acknowledged is in its log (extra ``serve``).

live          the loop in a thread: requests and reports in, a turn, the log, commands out
leading       waits until nobody else leads, while the service already answers
restart       what a loop finds when it begins
open_steps    what a host was asked to do with data and servers and has not done
turn_requests what a client wants in the log, and the answer that it waits for
solves        plans that people ask for, each solved by a process of its own (solve_child, solve_files)
requests      what clients send, and what of it is wrong
problems      errors as RFC 9457 has them
access        tokens, scopes, and how often somebody may ask
figures       metrics for Prometheus
handlers      what the handlers of all routes need (streams: server-sent events)
routes        what there is under /v1 for jobs, fleet and log; solve_routes: for solves and plans
openapi       the same as a document
page          a page for operators
app           all of it together
"""
