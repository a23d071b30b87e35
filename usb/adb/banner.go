package adb

import (
	"slices"
	"strings"
)

// Features of the protocol, as banners list them (AOSP transport.cpp).
const (
	FeatureShell2     = "shell_v2"
	FeatureStat2      = "stat_v2"
	FeatureList2      = "ls_v2"
	FeatureSendRecv2  = "sendrecv_v2"
	FeaturePushMkdir  = "fixed_push_mkdir"
	FeatureDelayedAck = "delayed_ack"
)

// hostFeatures is what this package implements and therefore announces.
var hostFeatures = []string{FeatureShell2, FeatureStat2, FeatureList2, FeaturePushMkdir, FeatureSendRecv2}

// Banner is what a peer says of itself in CNXN. Every string is the peer's own
// claim, untrusted.
type Banner struct {
	Type     string // "device", "recovery", "sideload", "bootloader", "rescue" or "host"
	Serial   string // second part; empty on modern phones
	Product  string // ro.product.name
	Model    string // ro.product.model
	Device   string // ro.product.device
	Features []string
}

// maxFeatures bounds the list of a banner; phones announce about twenty.
const maxFeatures = 128

// ParseBanner reads a banner: "type:serial:key=value;key=value;...", with or
// without the NUL and the semicolon that older versions end it with (AOSP
// adb.cpp, parse_banner). It never fails: what it cannot read stays empty.
func ParseBanner(payload []byte) Banner {
	s, _, _ := strings.Cut(string(payload), "\x00")
	var b Banner
	var properties string
	b.Type, s, _ = strings.Cut(s, ":")
	b.Serial, properties, _ = strings.Cut(s, ":")
	for property := range strings.SplitSeq(properties, ";") {
		key, value, _ := strings.Cut(property, "=")
		switch key {
		case "ro.product.name":
			b.Product = value
		case "ro.product.model":
			b.Model = value
		case "ro.product.device":
			b.Device = value
		case "features":
			b.Features = splitFeatures(value)
		}
	}
	return b
}

func splitFeatures(list string) []string {
	var features []string
	for name := range strings.SplitSeq(list, ",") {
		if name != "" && len(features) < maxFeatures && !slices.Contains(features, name) {
			features = append(features, name)
		}
	}
	return features
}

// Has reports whether the banner lists a feature.
func (b Banner) Has(feature string) bool { return slices.Contains(b.Features, feature) }

// hostBanner is the payload of our CNXN.
func hostBanner(delayedAck bool) []byte {
	features := slices.Clone(hostFeatures)
	if delayedAck {
		features = append(features, FeatureDelayedAck)
	}
	return []byte("host::features=" + strings.Join(features, ","))
}
