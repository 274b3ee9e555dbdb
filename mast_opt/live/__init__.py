"""The live system: the decisions in time, simulated and carried out.

service     the HTTP service
reports     pages and pictures of runs
hosts       what starts and stops jobs: simulated clusters, Kueue
simulation  traces and simulated clusters
importers   instances from the files of Gavel
policies    who runs, where and when
slow_paths  data plans and server assignments as steps of the loop
store       logs and snapshots that outlive the process
loop        the decision loop: events in, commands out
"""
