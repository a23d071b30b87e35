package android

// release is what differs from one Android to the next besides habits.
type release struct {
	version  int
	name     string // ro.build.version.release
	api      int
	build    string
	patch    string
	kernel   string
	codename string
}

var releases = map[int]release{
	7:  {7, "7.1.2", 25, "NJH47F", "2017-08-05", "3.18.31", "REL"},
	8:  {8, "8.1.0", 27, "OPM7.181205.001", "2018-12-05", "4.4.88", "REL"},
	9:  {9, "9", 28, "PQ3A.190801.002", "2019-08-01", "4.9.124", "REL"},
	10: {10, "10", 29, "QQ3A.200805.001", "2020-08-05", "4.14.117", "REL"},
	11: {11, "11", 30, "RQ3A.211001.001", "2021-10-05", "4.19.110", "REL"},
	12: {12, "12", 31, "SQ1D.220205.004", "2022-02-05", "5.4.147", "REL"},
	14: {14, "14", 34, "UQ1A.240205.004", "2024-02-05", "5.10.177", "REL"},
	15: {15, "15", 35, "AP3A.241005.015", "2024-10-05", "5.15.148", "REL"},
}
