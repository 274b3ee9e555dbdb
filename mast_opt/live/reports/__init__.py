"""Reports of simulated runs: one run as a page, and two runs on the same trace compared.

charts      pictures of a run over time
content     what the page of a run shows
write       the page into a file
comparison  two runs: figures side by side, and the jobs whose waits differ most
"""
