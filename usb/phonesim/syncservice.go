package phonesim

// syncService serves "sync:", the transfer of files.
type syncService struct {
	daemon *daemon
	stream *stream
}

func newSyncService(d *daemon, s *stream) *syncService { return &syncService{daemon: d, stream: s} }

func (y *syncService) serve() {}
