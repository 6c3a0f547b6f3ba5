# awk -f rare.awk writes a graph with a rare class: e.csv (edges), l.csv (labels), x.csv (features). 4 % of 3,000
# vertices are fraud, whose features are shifted by half a deviation; half of the edges between classes are left out.
BEGIN {
	srand(3); n = 3000; print "id,label" > "l.csv"
	for (v = 0; v < n; v++) {
		f[v] = rand() < 0.04; print v "," (f[v] ? "fraud" : "ok") > "l.csv"; r = v
		for (c = 0; c < 8; c++) r = r "," (sqrt(-2 * log(1 - rand())) * cos(6.2831853 * rand()) + 0.5 * f[v])
		print r > "x.csv"
	}
	for (e = 0; e < 15000; e++) {
		a = int(n * rand()); b = int(n * rand())
		if (f[a] != f[b] && rand() < 0.5) continue
		print a "," b > "e.csv"
	}
}
