module phonerack

go 1.26.0

require (
	eliasnaur.com/font v0.0.0-20230308162249-dd43949cb42d // indirect
	github.com/alecthomas/kong v1.17.0 // indirect
	github.com/andybalholm/brotli v1.3.0 // indirect
	github.com/go-text/typesetting v0.3.5 // indirect
	github.com/go-text/typesetting-utils v0.0.0-20260419141703-4ffe8874dabc // indirect
	github.com/google/go-cmp v0.7.0 // indirect
	github.com/google/gousb v1.1.3 // indirect
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/oklog/ulid/v2 v2.1.2 // indirect
	github.com/pelletier/go-toml/v2 v2.4.3 // indirect
	github.com/pierrec/lz4/v4 v4.1.33 // indirect
	github.com/thejerf/suture/v4 v4.0.6 // indirect
	go.etcd.io/bbolt v1.5.0 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	golang.org/x/image v0.48.0 // indirect
	golang.org/x/sync v0.25.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	mvdan.cc/sh/v3 v3.14.1 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
