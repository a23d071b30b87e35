package android

// ThermalFault is what can be wrong with the thermal service, which is there from Android 10 on.
type ThermalFault uint8

// The faults.
const (
	ThermalOK    ThermalFault = iota
	ThermalZeros              // every sensor reads 0.0
	ThermalNoHAL              // nothing is behind the service
)

// thermalNames are the sensors, by type.
var thermalNames = []struct {
	kind int
	name string
	rest float64 // degrees Celsius when nothing is hot
}{{0, "CPU0", 41.2}, {1, "GPU0", 39.8}, {2, "battery", 0}, {3, "skin", 33.1}}

func dumpThermal(c *call, _ []string) int {
	c.mu.Lock()
	status, fault := c.thermal, c.faults.Thermal
	battery := float64(c.battery.real.Temperature) / 10
	c.mu.Unlock()
	c.printf("IsStatusOverride: false\nThermalEventListeners:\n\tcallbacks: 4\n\tkilled: false\n\tbroadcasts count: -1\n")
	c.printf("ThermalStatusListeners:\n\tcallbacks: 7\n\tkilled: false\n\tbroadcasts count: -1\nThermal Status: %d\n", status)
	list := func(title string) {
		c.printf("%s:\n", title)
		for _, t := range thermalNames {
			v := t.rest
			if t.kind == 2 {
				v = battery
			}
			switch fault {
			case ThermalZeros:
				v = 0
			case ThermalNoHAL:
				continue
			}
			c.printf("\tTemperature{mValue=%.1f, mType=%d, mName=%s, mStatus=%d}\n", v, t.kind, t.name, status)
		}
	}
	list("Cached temperatures")
	c.printf("HAL Ready: %t\n", fault != ThermalNoHAL)
	if fault == ThermalNoHAL {
		return 0
	}
	hal := "ThermalHAL 2.0 connected: yes"
	if c.release.version >= 13 {
		hal = "ThermalHAL AIDL 1  connected: yes"
	}
	c.printf("HAL connection:\n\t%s\n", hal)
	list("Current temperatures from HAL")
	c.printf("Current cooling devices from HAL:\n\tCoolingDevice{mValue=0, mType=2, mName=cpu0}\n")
	if c.release.version >= 11 {
		c.printf("Temperature static thresholds from HAL:\n")
		for _, t := range thermalNames {
			c.printf("\tTemperatureThreshold{mType=%d, mName=%s, mHotThrottlingThresholds=[NaN, 39.0, 43.0, 45.0, 46.5, 52.0, 55.0], "+
				"mColdThrottlingThresholds=[NaN, NaN, NaN, NaN, NaN, NaN, NaN]}\n", t.kind, t.name)
		}
	}
	return 0
}
