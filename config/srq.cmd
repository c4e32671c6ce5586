# Commands for rocade-testpmd: resizes a shared receive queue, and refills it on its limit event,
# while the link loses packets. Example, without root:
#   rocade-testpmd -- --loop --qps 8 --size 64,1k,16k --cmdline-file config/srq.cmd
set srq 0 limit 64
start
wait 1
set srq 0 size 8192
set impair rx loss 1% dup 0.5% reorder 0.5%
wait 1
show srq
set impair rx off
wait 1
stop
show port stats
