package remembered

import (
	"encoding/json"
	"testing"
)

func TestTheOldestReadingsGo(t *testing.T) {
	var p Phone
	for n := range maxReadings + 2 {
		p.AddReading(Reading{Level: n})
		if want := min(n+1, maxReadings); len(p.Battery) != want {
			t.Fatalf("after %d readings: %d", n+1, len(p.Battery))
		}
	}
	if p.Battery[0].Level != 2 || p.Battery[maxReadings-1].Level != maxReadings+1 {
		t.Errorf("from %d to %d", p.Battery[0].Level, p.Battery[maxReadings-1].Level)
	}
}

func TestACloneIsApart(t *testing.T) {
	p := Phone{
		Strategies: json.RawMessage(`1`), Baseline: &Baseline{Packages: []string{"a"}}, Dirty: &Dirty{Task: "t"}, Battery: []Reading{{Level: 1}},
	}
	c := p.Clone()
	c.Strategies[0], c.Baseline.Packages[0], c.Dirty.Task, c.Battery[0].Level = '2', "b", "u", 2
	if string(p.Strategies) != "1" || p.Baseline.Packages[0] != "a" || p.Dirty.Task != "t" || p.Battery[0].Level != 1 {
		t.Errorf("%+v changed with its clone", p)
	}
}
