package signpost

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"strings"

	"phonerack/firmware/qrcode"
)

const (
	maxAddresses = 6
	maxAddress   = 200 // bytes; what a QR code of modest size holds
)

// Sign is what is shown.
type Sign struct {
	Rack      string
	Slot      int
	Addresses []string // URLs, the one to try first first
	Path      string   // that the QR code adds to the first, such as "/P/SECRET"; "" for none. It is not written out
}

var page = template.Must(template.New("sign").Parse(`<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{.Rack}}</title>
<style>body{background:#fff;color:#000;font:6vw sans-serif;margin:5vw;text-align:center;overflow-wrap:anywhere}svg{width:80vmin;height:80vmin}h1{font-size:9vw;margin:0}li{list-style:none;font-weight:bold}ul{padding:0}</style>
<h1>{{.Rack}}</h1>
<p>slot {{.Slot}} / 插槽 {{.Slot}}
{{with .Code}}<p><svg viewBox="0 0 {{.Size}} {{.Size}}" shape-rendering="crispEdges" role="img"><rect width="{{.Size}}" height="{{.Size}}" fill="#fff"/><path stroke="#000" d="{{.Path}}"/></svg>{{end}}
{{if .Addresses}}<ul>{{range .Addresses}}<li>{{.}}{{end}}</ul>{{else}}<p>The rack has no network address. Connect its network cable. / 机架没有网络地址，请连接网线。{{end}}
</html>
`))

// Code is what the QR code says; "" without an address.
func (s Sign) Code() string {
	if len(s.Addresses) == 0 {
		return ""
	}
	return strings.TrimSuffix(s.Addresses[0], "/") + cmp.Or(s.Path, "/")
}

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
		Code      *qrcode.Code // nil without an address
		Addresses []string
	}{s.Rack, s.Slot, nil, addresses}
	if len(addresses) > 0 {
		code, err := qrcode.Draw(Sign{Addresses: addresses, Path: s.Path}.Code())
		if err != nil {
			return nil, err
		}
		data.Code = &code
	}
	var out bytes.Buffer
	if err := page.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	return out.Bytes(), nil
}
