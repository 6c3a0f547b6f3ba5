package fetch

import (
	"maps"
	"slices"

	"starling/dataset"
	"starling/dataset/generate"
)

// publicSet is a dataset anyone can download: its files and how they are imported.
type publicSet struct {
	about   string
	format  string
	files   []publicFile
	single  bool // the one file itself is imported, not its folder
	options dataset.ImportOptions
	make    func(out string, overwrite bool) (dataset.Summary, error) // instead of files
}

// publicFile is one download. Size and SHA-256 are given where they were checked;
// otherwise the sum of what came is shown and kept beside the download.
type publicFile struct {
	name, url string
	size      int64
	most      int64 // bytes it may have, where size is not known; 0: mostDownload
	sha256    string
}

// Names lists the datasets that Get knows, the one that needs no network first.
func Names() []string {
	names := slices.Sorted(maps.Keys(publicSets))
	at := slices.Index(names, "demo")
	return slices.Concat([]string{"demo"}, names[:at], names[at+1:])
}

// About is a line about a dataset.
func About(name string) string { return publicSets[name].about }

const (
	planetoidPlace = "https://github.com/kimiyoung/planetoid/raw/master/data/"
	ogbPlace       = "https://snap.stanford.edu/ogb/data/nodeproppred/"
	benchmarkPlace = "https://github.com/shchur/gnn-benchmark/raw/master/data/npz/"
	geomPlace      = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/master/"
	drivePlace     = "https://drive.usercontent.google.com/download?export=download&confirm=t&id="
)

var publicSets = map[string]*publicSet{
	"demo":            demoSet,
	"cora":            planetoidSet("cora", "2,708 papers, 7 classes", coraSums),
	"citeseer":        planetoidSet("citeseer", "3,327 papers, 6 classes", nil),
	"pubmed":          planetoidSet("pubmed", "19,717 papers, 3 classes", nil),
	"ogbn-arxiv":      ogbSet("arxiv", "arxiv.zip", "169,343 papers, 40 classes; give --symmetrize as most do"),
	"ogbn-products":   ogbSet("products", "products.zip", "2.4 million products, 47 classes; 1.4 GB"),
	"ogbn-proteins":   ogbSet("proteins", "proteins.zip", "132,534 proteins, 112 labels each; 0.2 GB"),
	"ogbn-papers100M": ogbSet("papers100M", "papers100M-bin.zip", "111 million papers, 172 classes; 57 GB"),
	"reddit": {about: "232,965 posts, 41 classes; DGL's files", format: "dgl-reddit", options: dataset.ImportOptions{Name: "reddit"},
		files: []publicFile{{name: "reddit.zip", url: "https://data.dgl.ai/dataset/reddit.zip"}}},
	"flickr": saintSet("flickr", "89,250 images, 7 classes", "1crmsTbd1-2sEXsGwa2IKnIB7Zd3TmUsy", "1join-XdvX3anJU_MLVtick7MgeAQiWIZ",
		"1uxIkbtg5drHTsKt-PAsZZ4_yJmgFmle9", "1htXCtuktuCW8TR8KiKfrFDAxUgekQoV7"),
	"yelp": saintSet("yelp", "716,847 users, 100 labels each", "1Juwx8HtDwSzmVIJ31ooVa1WljI4U5JnA", "1Zy6BZH_zLEjKlEFSduKE5tV9qqA_8VtM",
		"1VUcBGr0T0-klqerjAjxRmAqFuld_SMWU", "1NI5pa5Chpd-52eSmLW60OnB3WS5ikxq_"),
	"amazon": saintSet("amazon", "1.6 million products, 107 labels each", "17qhNA8H1IpbkkR-T2BmPQm8QNW5do-aa", "10SW8lCvAj-kb6ckkfTOC5y0l8XXdtMxj",
		"1LIl4kimLfftj4-7NmValuWyCQE8AaE7P", "1npK9xlmbnjNkV80hK2Q68wTEVOFjnt4K"),
	"amazon-photo":     benchmarkSet("amazon_electronics_photo.npz", "amazon-photo", "7,650 products, 8 classes"),
	"amazon-computers": benchmarkSet("amazon_electronics_computers.npz", "amazon-computers", "13,752 products, 10 classes"),
	"coauthor-cs":      benchmarkSet("ms_academic_cs.npz", "coauthor-cs", "18,333 authors, 15 classes"),
	"coauthor-physics": benchmarkSet("ms_academic_phy.npz", "coauthor-physics", "34,493 authors, 5 classes"),
	"film": {about: "7,600 actors, 5 classes; the first of its ten splits", format: "geom", options: dataset.ImportOptions{Name: "film"}, files: []publicFile{
		{name: "film_out1_graph_edges.txt", url: geomPlace + "new_data/film/out1_graph_edges.txt", size: 323820, sha256: "997cdce67ea9c29257d3ffe796328391931901cf823830affa453178b60e2c3e"},
		{name: "film_out1_node_feature_label.txt", url: geomPlace + "new_data/film/out1_node_feature_label.txt", size: 207718, sha256: "1d5cdd094f8b91e770f6decfca85b35cf42f75d1efb51055fd6af16e11820ff8"},
		{name: "film_split_0.6_0.2_0.npz", url: geomPlace + "splits/film_split_0.6_0.2_0.npz"},
	}},
}

var coraSums = map[string]publicFile{
	"x":          {size: 22119, sha256: "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab"},
	"tx":         {size: 148025, sha256: "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a"},
	"allx":       {size: 257305, sha256: "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543"},
	"y":          {size: 4054, sha256: "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1"},
	"ty":         {size: 28135, sha256: "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad"},
	"ally":       {size: 47959, sha256: "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71"},
	"graph":      {size: 59847, sha256: "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d"},
	"test.index": {size: 5000, sha256: "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875"},
}

func planetoidSet(name, about string, known map[string]publicFile) *publicSet {
	s := &publicSet{about: about, format: "planetoid", options: dataset.ImportOptions{Name: name}}
	for _, suffix := range []string{"x", "tx", "allx", "y", "ty", "ally", "graph", "test.index"} {
		f := known[suffix]
		f.name = "ind." + name + "." + suffix
		f.url = planetoidPlace + f.name
		s.files = append(s.files, f)
	}
	return s
}

func ogbSet(name, file, about string) *publicSet {
	return &publicSet{about: about, format: "ogb", options: dataset.ImportOptions{Name: "ogbn-" + name}, files: []publicFile{{name: file, url: ogbPlace + file, most: 128 << 30}}}
}

// saintSet is GraphSAINT's files where its authors put them: adjacency, features,
// classes and roles, by the names they have there.
func saintSet(name, about string, ids ...string) *publicSet {
	s := &publicSet{about: about, format: "saint", options: dataset.ImportOptions{Name: name}}
	for i, file := range []string{"adj_full.npz", "feats.npy", "class_map.json", "role.json"} {
		s.files = append(s.files, publicFile{name: file, url: drivePlace + ids[i]})
	}
	return s
}

func benchmarkSet(file, name, about string) *publicSet {
	return &publicSet{about: about, format: "npz", single: true, options: dataset.ImportOptions{Name: name}, files: []publicFile{{name: file, url: benchmarkPlace + file}}}
}

// demoSet needs no network: the dataset is drawn on the spot.
var demoSet = &publicSet{about: "1,500 papers, 6 subjects; inside the program, no network needed", make: generate.Demo}
