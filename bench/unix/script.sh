# What UnixBench's shell script does: a few programs and pipes on a small file.
sort -n <"$0" >sorted.$$
od -c sorted.$$ | sort -r | head -n 5 >dumped.$$
grep -c o "$0" | tee counted.$$ | wc -c >/dev/null
rm sorted.$$ dumped.$$ counted.$$
