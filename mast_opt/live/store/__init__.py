"""Storage of a live loop's log: what was acknowledged is there, whatever ends the process.

records      what a store keeps in addition to events: open commands, answers to clients, snapshots
errors       what can go wrong
schema       tables, and how older ones become those of today
sql_store    a store over a database; writer commits several appends at once, lead says who may write
sqlite       the embedded database, one folder
postgresql   a server of its own, where one machine is not enough
state_format a state of the loop as bytes
recovery     the state that a store leads to: a snapshot, and the events after it
"""
