package signpost

import (
	"bytes"
	"fmt"
	"html/template"
	"strings"

	"rsc.io/qr"
)

const (
	maxAddresses = 6
	maxAddress   = 200 // bytes; what a QR code of modest size holds
	quiet        = 4   // modules of white around a QR code, ISO/IEC 18004
)

// Sign is what is shown.
type Sign struct {
	Rack      string
	Slot      int
	Addresses []string // URLs, the one to try first first
}

var page = template.Must(template.New("sign").Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Rack}}</title>
<style>body{background:#fff;color:#000;font:6vw sans-serif;margin:5vw;text-align:center;overflow-wrap:anywhere}svg{width:80vmin;height:80vmin}h1{font-size:9vw;margin:0}li{list-style:none;font-weight:bold}ul{padding:0}</style>
<h1>{{.Rack}}</h1>
<p>slot {{.Slot}} / 插槽 {{.Slot}}
{{if .Code}}<p>{{.Code}}{{end}}
{{if .Addresses}}<ul>{{range .Addresses}}<li>{{.}}{{end}}</ul>{{else}}<p>The rack has no network address. Connect its network cable. / 机架没有网络地址，请连接网线。{{end}}
</html>
`))

// HTML is the page. Addresses that are too many or too long are left out.
func (s Sign) HTML() ([]byte, error) {
	var addresses []string
	for _, a := range s.Addresses {
		if len(a) <= maxAddress && len(addresses) < maxAddresses {
			addresses = append(addresses, a)
		}
	}
	data := struct {
		Rack      string
		Slot      int
		Code      template.HTML
		Addresses []string
	}{s.Rack, s.Slot, "", addresses}
	if len(addresses) > 0 {
		code, err := Code(addresses[0])
		if err != nil {
			return nil, err
		}
		data.Code = template.HTML(code) // made of numbers alone
	}
	var out bytes.Buffer
	if err := page.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	return out.Bytes(), nil
}

// Code is a QR code of the text as SVG, with its white margin.
func Code(text string) (string, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return "", fmt.Errorf("make a QR code: %w", err)
	}
	var path strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			begin := x
			for x < code.Size && code.Black(x, y) {
				x++
			}
			if x > begin {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", begin, y, x-begin, x-begin)
			}
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="%d %d %d %d" shape-rendering="crispEdges" role="img"><path fill="#fff" d="M-%d -%dh%dv%dh-%dz"/><path d="%s"/></svg>`,
		-quiet, -quiet, code.Size+2*quiet, code.Size+2*quiet, quiet, quiet, code.Size+2*quiet, code.Size+2*quiet, code.Size+2*quiet, path.String()), nil
}
