package powerrig

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"phonerack/firmware/rig"
	"phonerack/firmware/rig/nbd"
	"phonerack/firmware/rig/rackrig"
)

// Kind is what disk the board has, and so what a cut takes.
type Kind int

// Kinds of disks.
const (
	// Direct is a file that QEMU opens past this machine's memory (cache=none): lost is what the guest still had in its own.
	Direct Kind = iota
	// Lossy is a disk with a cache of its own (package nbd): lost is, block by block and by chance, also what the guest has
	// written and not flushed.
	Lossy
)

func (k Kind) String() string { return [...]string{"cache=none", "unflushed writes dropped"}[k] }

// Where things are on the board.
const (
	identity = rackrig.GuestDisk + "/identity.json"
	cloudDir = rackrig.GuestDisk + "/rackcloud"

	rackConfig = "[planner]\ntransport = \"cloud\"\n[cloud]\nidentity = %q\n"
)

// memory of the board in MiB: programs lie in its initramfs, so they take their size twice while it boots.
const memory = 1024

// Site is a board with its disk and its phones. Cut may be called while another goroutine is in Start, Submit or States, which
// then fail; apart from that it is used by one goroutine.
type Site struct {
	Phones []*rackrig.Phone

	dir      string
	kit      *rig.Kit
	image    string
	direct   string // QEMU's cache for Direct
	cloud    string // path of rackcloud for the board
	enrolled bool

	board *rackrig.Board
	disk  *nbd.Disk // of a Lossy boot
	file  *os.File  // behind it
	stop  func()    // ends its server
}

// slots are where the phones sit: two behind a hub at 12 Mbit/s, one on the controller.
var slots = map[int]string{1: "1-1.1", 2: "1-1.2", 3: "1-2"}

// New makes the disk and the phones in a folder that the caller removes, and builds the programs. The folder's name must be short:
// a socket in it has 107 bytes for its path.
func New(ctx context.Context, dir string) (*Site, error) {
	kit, err := rig.Prepare(ctx, "")
	if err != nil {
		return nil, err
	}
	cache, err := rig.CacheDir()
	if err != nil {
		return nil, err
	}
	s := &Site{dir: dir, kit: kit, image: filepath.Join(dir, "disk"), cloud: filepath.Join(cache, "programs", "rackcloud")}
	if err := buildCloud(ctx, s.cloud); err != nil {
		return nil, err
	}
	err = MakeImage(ctx, s.image)
	if err == nil {
		err = TearCommit(ctx, s.image) // a cut that went before all others
	}
	if err != nil {
		return nil, err
	}
	s.direct = cacheOf(s.image)
	for slot, port := range slots {
		p, err := rackrig.Simulate(rackrig.PhoneSpec{
			Slot: slot, Port: port, Serial: fmt.Sprintf("SIM%04d", slot), Android: 14, Language: "en", Seed: int64(slot),
			Width: 360, Height: 640, Density: 160, // an emulated processor compresses the pictures
		})
		if err != nil {
			return nil, err
		}
		s.Phones = append(s.Phones, p)
	}
	return s, nil
}

// buildCloud builds rackcloud for the board, as make build-portable does, so that the Go tool has most of it.
func buildCloud(ctx context.Context, path string) error {
	return rig.BuildPortable(ctx, path, "build", "-ldflags=-s -w", "phonerack/cmd/rackcloud")
}

// cacheOf is QEMU's cache for a file past the memory of this machine, or through it where the file system refuses that:
// QEMU alone loses its power, so that what it has written stays either way.
func cacheOf(path string) string {
	fd, err := syscall.Open(path, syscall.O_RDWR|syscall.O_DIRECT|syscall.O_CLOEXEC, 0)
	if err != nil {
		return "writeback"
	}
	syscall.Close(fd)
	return "none"
}

// DirectCache is QEMU's word for how it opens the file of a Direct disk: "none", or "writeback" where the file system
// knows no O_DIRECT.
func (s *Site) DirectCache() string { return s.direct }

// Board is the board as it was booted last.
func (s *Site) Board() *rackrig.Board { return s.board }

// Disk is the disk of a Lossy boot; nil without one.
func (s *Site) Disk() *nbd.Disk { return s.disk }

// Boot boots the board and plugs its phones in. It returns when the disk is mounted; no program runs yet.
func (s *Site) Boot(ctx context.Context, kind Kind) error {
	drive := rig.Drive{Path: s.image, Cache: s.direct}
	if kind == Lossy {
		var err error
		if drive, err = s.offer(); err != nil {
			return err
		}
	}
	b, err := rackrig.Boot(ctx, s.kit, rackrig.BoardSpec{
		Hubs: []rig.Hub{{Path: "1-1", Ports: 4}}, Slots: slots, Memory: memory,
		Files: map[string]string{"/bin/rackcloud": s.cloud}, Disk: &drive, Config: fmt.Sprintf(rackConfig, identity),
	})
	s.board = b
	for _, p := range s.Phones {
		if err == nil {
			_, err = b.Plug(ctx, p.Port, p.USB)
		}
	}
	if err == nil && kind == Lossy {
		_, _, err = b.Run(ctx, writeSoon)
	}
	return err
}

// Start starts rackcloud and rackd, and returns when both answer. The first time the rack is enrolled in between.
func (s *Site) Start(ctx context.Context) error {
	if !s.enrolled {
		if err := s.startCloud(ctx); err != nil {
			return err
		}
		if err := s.enrol(ctx); err != nil {
			return err
		}
		s.enrolled = true
		return s.board.StartRackd(ctx)
	}
	cloud := make(chan error, 1)
	go func() { cloud <- s.startCloud(ctx) }()
	return errors.Join(s.board.StartRackd(ctx), <-cloud)
}

// writeSoon makes the guest's kernel write what nobody has synced after 0.1 s, in place of 30 s: so the disk has more that is not flushed.
const writeSoon = "echo 10 >/proc/sys/vm/dirty_expire_centisecs; echo 5 >/proc/sys/vm/dirty_writeback_centisecs"

// offer puts a disk with a cache before the image.
func (s *Site) offer() (rig.Drive, error) {
	file, err := os.OpenFile(s.image, os.O_RDWR, 0)
	if err != nil {
		return rig.Drive{}, err
	}
	disk, err := nbd.New(file, imageSize)
	if err != nil {
		return rig.Drive{}, errors.Join(err, file.Close())
	}
	l, err := net.Listen("unix", filepath.Join(s.dir, "nbd"))
	if err != nil {
		return rig.Drive{}, errors.Join(err, file.Close())
	}
	life, cancel := context.WithCancel(context.Background())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = nbd.Serve(life, l, disk) // what it could say is seen in the guest
	}()
	s.disk, s.file, s.stop = disk, file, func() { cancel(); <-served }
	return rig.Drive{Socket: l.Addr().String()}, nil
}

var cloudReady = regexp.MustCompile(`^rackcloud: ready:`)

// serveCloud runs rackcloud as a service manager does.
const serveCloud = "while :; do rackcloud serve --state " + cloudDir + " --name 127.0.0.1 --listen 127.0.0.1:8470" +
	" --admin-listen 127.0.0.1:8471 --mqtt 127.0.0.1:8883; echo ended; sleep 1; done"

func (s *Site) startCloud(ctx context.Context) error {
	if _, err := s.board.Start(ctx, "rackcloud", "sh", "-c", serveCloud); err != nil {
		return err
	}
	_, err := s.board.WaitLine(ctx, cloudReady)
	return err
}

// enrol makes the rack one of the cloud's, and the shipped rules its planner.
func (s *Site) enrol(ctx context.Context) error {
	for _, order := range []string{
		"rackcloud provider add rules --provider scripted --activate",
		"rackcloud host add --name site --out " + identity,
	} {
		out, exit, err := s.board.Run(ctx, "exec 2>&1; "+order)
		if err != nil || exit != 0 {
			return fmt.Errorf("%s: exit code %d, %v: %s", order, exit, err, out)
		}
	}
	return nil
}

// speak sends its input to the admin API and writes what comes back. The connection's writing end stays open until then: to a
// server its end means that nobody waits for the answer.
const speak = `f=/tmp/ask.$$; mkfifo $f; nc 127.0.0.1 8471 <$f & exec 3>$f; rm $f; cat >&3; wait $!`

// ask speaks with the admin API from within the board; body "" is a GET.
func (s *Site) ask(ctx context.Context, path, body string, v any) error {
	method := "GET"
	if body != "" {
		method = "POST"
	}
	request := fmt.Sprintf("%s %s HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, len(body), body)
	var raw bytes.Buffer
	exit, err := s.board.Stream(ctx, speak, []byte(request), &raw)
	out := raw.String()
	if err == nil && exit != 0 {
		err = fmt.Errorf("exit code %d", exit)
	}
	if err == nil {
		_, answer, _ := strings.Cut(out, "\r\n\r\n")
		err = json.Unmarshal([]byte(answer), v)
		if !strings.HasPrefix(out, "HTTP/1.0 2") {
			err = errors.New("refused")
		}
	}
	if err != nil {
		return fmt.Errorf("ask %s: %w: %.500q", path, err, out)
	}
	return nil
}

// Submit submits a task and returns its id. The same key again is the same task.
func (s *Site) Submit(ctx context.Context, key, goal string) (string, error) {
	var body bytes.Buffer
	err := json.NewEncoder(&body).Encode(map[string]any{"key": key, "task": map[string]any{"goal": goal}})
	var task struct {
		ID string `json:"task_id"`
	}
	if err == nil {
		err = s.ask(ctx, "/v1/admin/tasks", strings.TrimSpace(body.String()), &task)
	}
	if err == nil && task.ID == "" {
		err = fmt.Errorf("submit %s: no id", key)
	}
	return task.ID, err
}

// States asks for the tasks, 100 at most: id -> state.
func (s *Site) States(ctx context.Context) (map[string]string, error) {
	var page struct {
		Items []struct {
			ID    string `json:"task_id"`
			State string `json:"state"`
		} `json:"items"`
	}
	if err := s.ask(ctx, "/v1/admin/tasks?limit=100", "", &page); err != nil {
		return nil, err
	}
	states := map[string]string{}
	for _, t := range page.Items {
		states[t.ID] = t.State
	}
	return states, nil
}

// Cut takes the power at once. What chance has left of the unflushed writes of a Lossy disk is drawn from random.
func (s *Site) Cut(random *rand.Rand) (loss nbd.Loss, err error) {
	if s.disk != nil {
		loss, err = s.disk.Cut(random)
	}
	return loss, errors.Join(err, s.Close())
}

// Close ends the board, and the server of its disk. The site can be booted again.
func (s *Site) Close() (err error) {
	if s.board != nil {
		err = s.board.Close()
	}
	if s.disk != nil {
		s.stop()
		err = errors.Join(err, s.file.Close())
		s.disk, s.file, s.stop = nil, nil, nil
	}
	return err
}

// Unpack judges the disk by e2fsck and copies its files into a folder that it makes.
func (s *Site) Unpack(ctx context.Context, dir string) error { return Unpack(ctx, s.image, dir) }
