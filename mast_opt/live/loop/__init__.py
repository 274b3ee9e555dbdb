"""One system over time: events, the states of jobs, and what a log of events says. Nothing here does any I/O, reads a
clock or draws a random number.

events       the closed list of what can happen and be decided; job_spec is what a client says of a job
job_states   which states a job can be in, and which events lead from one to another
event_log    a log as text, one line of JSON for each event
engine       takes in what is reported, lets a policy decide, and says what hosts are to do; state, jobs and tenants are
             its memory, snapshot and actions what a policy sees and may do, commands what goes to hosts
job_log      what a log says about jobs, as columns
metrics      figures of a run, from its log alone
log_checker  independent check of a log
"""
