package screen

import "testing"

// worker returns an engine of the size of a usual phone with a full list on its screen.
func worker(b *testing.B) *Engine {
	b.Helper()
	c := newClock()
	e, err := New(Config{Language: "en", Seed: 1, Clock: c.Now})
	if err != nil {
		b.Fatal(err)
	}
	e.SetAnimationScale(0)
	if err := e.Launch("com.phonerack.shop"); err != nil {
		b.Fatal(err)
	}
	return e
}

func BenchmarkRenderChanged(b *testing.B) {
	e := worker(b)
	for b.Loop() {
		e.SetBattery(50, false)
		e.Render()
	}
}

func BenchmarkRenderUnchanged(b *testing.B) {
	e := worker(b)
	for b.Loop() {
		e.Render()
	}
}

func BenchmarkTreeChanged(b *testing.B) {
	e := worker(b)
	for b.Loop() {
		e.SetBattery(50, false)
		e.Tree()
	}
}

func BenchmarkTreeUnchanged(b *testing.B) {
	e := worker(b)
	for b.Loop() {
		e.Tree()
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		if _, err := New(Config{Language: "zh"}); err != nil {
			b.Fatal(err)
		}
	}
}
