# awk -f far.awk writes a graph with numbers to predict that are far from 0: e.csv (edges), l.csv (labels), x.csv
# (features). A number is 10,000, and 200 times the vertex's first feature and the sum of its neighbours' second ones
# over the root of their count, and noise.
function normal() { return sqrt(-2 * log(1 - rand())) * cos(6.2831853 * rand()) }
BEGIN {
	srand(5); n = 3000; print "id,price" > "l.csv"
	for (v = 0; v < n; v++) {
		r = v
		for (c = 0; c < 8; c++) { x[v, c] = normal(); r = r "," x[v, c] }
		print r > "x.csv"
	}
	for (e = 0; e < 9000; e++) {
		a = int(n * rand()); b = int(n * rand())
		if (a == b) continue
		s[a] += x[b, 1]; s[b] += x[a, 1]; d[a]++; d[b]++
		print a "," b > "e.csv"
	}
	for (v = 0; v < n; v++)
		print v "," 10000 + 200 * (x[v, 0] + (d[v] ? s[v] / sqrt(d[v]) : 0) + 0.3 * normal()) > "l.csv"
}
