package search_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"phonerack/agent/skill/search"
)

var shelf = []search.Document{
	{ID: "xhs-explore", Name: "小红书探索", Description: "搜索小红书笔记，浏览推荐内容，查看笔记详情。", Tags: []string{"社交"}, Aliases: []string{"xiaohongshu", "RED", "xhs"}},
	{ID: "xhs-publish", Name: "小红书发布", Description: "发布图文笔记，上传封面图，填写标题和话题。", Tags: []string{"社交"}, Aliases: []string{"xiaohongshu", "xhs"}},
	{ID: "xhs-login", Name: "小红书登录", Description: "扫码登录，检查登录状态。", Tags: []string{"社交"}},
	{ID: "xhs-interact", Name: "小红书互动", Description: "点赞、收藏、评论笔记。"},
	{ID: "line-send", Name: "LINEメッセージ送信", Description: "トーク画面で友だちにメッセージを送る。スクリーンショットも撮れます。", Tags: []string{"メッセージ"}},
	{ID: "mercari-search", Name: "メルカリ商品検索", Description: "キーワードで商品を検索し、価格順に並べ替える。"},
	{ID: "kakao-send", Name: "카카오톡 메시지 보내기", Description: "친구에게 메시지를 보냅니다. 사진도 첨부할 수 있습니다.", Aliases: []string{"KakaoTalk"}},
	{ID: "naver-search", Name: "네이버 검색", Description: "네이버에서 검색어로 뉴스를 찾습니다."},
	{ID: "wifi-setup", Name: "Wi-Fi setup", Description: "Connects the phone to a wireless network.", Tags: []string{"settings"}},
	{ID: "battery-care", Name: "Battery care", Description: "Reads battery health; the phone charges to 80 %.", Tags: []string{"settings"}},
	{ID: "screenshot", Name: "Screenshot", Description: "Takes a screenshot of the phone.", Aliases: []string{"截图", "スクショ"}},
	{ID: "tea", Name: "茶", Description: "茶"},
	{ID: "thai", Name: "ค้นหาสินค้า", Description: "ค้นหาสินค้าในแอป"},
}

func ids(hits []search.Hit) []string {
	var all []string
	for _, h := range hits {
		all = append(all, h.ID)
	}
	return all
}

// TestQueries: the first hits of a query, in order.
func TestQueries(t *testing.T) {
	x := search.New(shelf)
	for query, want := range map[string][]string{
		// Chinese
		"小红书 搜索": {"xhs-explore"},
		"小红书搜索":  {"xhs-explore"},
		"登录":     {"xhs-login"},
		"封面图":    {"xhs-publish"},
		"点赞 评论":  {"xhs-interact"},
		"茶":      {"tea"},
		"截图":     {"screenshot"},
		// Japanese
		"商品検索":      {"mercari-search"},
		"検索":        {"mercari-search"},
		"メッセージを送る":  {"line-send"},
		"ﾒｯｾｰｼﾞ":    {"line-send"}, // half-width
		"スクショ":      {"screenshot"},
		"スクリーンショット": {"line-send"},
		"価格順 メルカリ":  {"mercari-search"},
		// Korean
		"메시지":     {"kakao-send"},
		"카카오톡":    {"kakao-send"},
		"카카오톡으로":  {"kakao-send"}, // with an ending
		"네이버 검색어": {"naver-search"},
		"한":       nil,
		// mixed
		"xiaohongshu 发布":  {"xhs-publish", "xhs-explore"},
		"XIAOHONGSHU":     {"xhs-publish", "xhs-explore"},
		"ＸＨＳ":             {"xhs-publish", "xhs-explore"}, // full-width
		"xhs-publish":     {"xhs-publish"},
		"xhs publish":     {"xhs-publish"},
		"LINE送信":          {"line-send"},
		"screenshot スクショ": {"screenshot"},
		"KakaoTalk 메시지":   {"kakao-send"},
		"สินค้า":          {"thai"},
		// English
		"battery":                 {"battery-care"},
		"Fi WI":                   {"wifi-setup"},
		"settings battery":        {"battery-care", "wifi-setup"},
		"screen\u200bshot":        {"screenshot"},
		"shot":                    nil,
		"\"battery\" -phone OR (": {"battery-care"},
		"":                        nil,
		"  ":                      nil, "!?": nil,
	} {
		got := ids(x.Search(query, nil, 0, 10))
		if want == nil && got != nil || len(got) < len(want) || !slices.Equal(got[:len(want)], want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
}

// TestSpec000_VisibilityInSearch: what is not visible takes no place among the best.
func TestSpec000_VisibilityInSearch(t *testing.T) {
	var docs []search.Document
	for i := range 100 {
		docs = append(docs, search.Document{ID: "s" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Name: "search", Description: strings.Repeat("word ", i)})
	}
	x := search.New(docs)
	all := ids(x.Search("search", nil, 0, 100))
	if len(all) != 100 {
		t.Fatalf("%d hits", len(all))
	}
	best := map[string]bool{}
	for _, id := range all[:50] {
		best[id] = true
	}
	t.Run("entitlement is applied before the best are chosen", func(t *testing.T) {
		got := ids(x.Search("search", func(id string) bool { return !best[id] }, 0, 5))
		if diff := cmp.Diff(all[50:55], got); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a skill that is not entitled answers like an unknown one", func(t *testing.T) {
		if got := x.Search("search", func(string) bool { return false }, 0, 5); len(got) != 0 {
			t.Errorf("%v", got)
		}
	})
}

// TestSearchIsFilteredSorting compares with filtering and sorting all that is found.
func TestSearchIsFilteredSorting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		docs, query := collection(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 60).Draw(t, "size"))
		x := search.New(docs)
		hidden := map[string]bool{}
		for _, d := range docs {
			hidden[d.ID] = rapid.Bool().Draw(t, d.ID)
		}
		names := map[string]string{}
		for _, d := range docs {
			names[d.ID] = d.Name
		}
		var want []search.Hit
		for _, h := range x.Search(query, nil, 0, len(docs)+1) {
			if !hidden[h.ID] {
				want = append(want, h)
			}
		}
		if !slices.IsSortedFunc(want, func(a, b search.Hit) int {
			switch {
			case a.Score != b.Score:
				return int(2*boolean(a.Score < b.Score) - 1)
			case names[a.ID] != names[b.ID]:
				return strings.Compare(names[a.ID], names[b.ID])
			}
			return strings.Compare(a.ID, b.ID)
		}) {
			t.Fatalf("not sorted: %v", want)
		}
		skip, limit := rapid.IntRange(0, 10).Draw(t, "skip"), rapid.IntRange(1, 10).Draw(t, "limit")
		want = want[min(skip, len(want)):]
		want = want[:min(limit, len(want))]
		got := x.Search(query, func(id string) bool { return !hidden[id] }, skip, limit)
		if len(got) != len(want) || !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func boolean(b bool) int {
	if b {
		return 1
	}
	return 0
}

// collection generates documents of a small vocabulary, as real ones have.
func collection(seed uint64, size int) (docs []search.Document, query string) {
	r := rand.New(rand.NewPCG(seed, 1))
	english := strings.Fields("search publish login message photo video battery network settings screen note comment like order price shop map route music play file read write open close install update")
	hanzi := []rune("小红书搜索发布登录消息照片视频电池网络设置屏幕笔记评论点赞订单价格商店地图路线音乐播放文件阅读写入打开关闭安装更新微信支付抖音淘宝京东美团外卖快递")
	kana := []rune("メッセージ検索送信画面写真動画設定商品価格地図音楽再生")
	hangul := []rune("메시지검색사진동영상설정상품가격지도음악재생화면")
	word := func() string {
		if r.IntN(6) == 0 { // a word that few have
			w := make([]byte, 4+r.IntN(6))
			for i := range w {
				w[i] = "abcdefghijklmnopqrstuvwxyz"[r.IntN(26)]
			}
			return string(w)
		}
		return english[r.IntN(len(english))]
	}
	text := func(words int) string {
		var b strings.Builder
		script := [][]rune{nil, nil, hanzi, kana, hangul}[r.IntN(5)]
		for range words {
			if script == nil {
				b.WriteString(word() + " ")
				continue
			}
			for range 2 + r.IntN(3) {
				b.WriteRune(script[r.IntN(len(script))])
			}
			if r.IntN(3) == 0 {
				b.WriteString("，")
			}
		}
		return b.String()
	}
	for i := range size {
		docs = append(docs, search.Document{
			ID:   strings.ReplaceAll(strings.TrimSpace(word()+" "+word()), " ", "-") + "-" + strings.Repeat("i", i%3) + string(rune('0'+i%10)) + itoa(i),
			Name: text(2 + r.IntN(2)), Description: text(15 + r.IntN(25)), Tags: []string{word(), text(1)}, Aliases: []string{text(1)},
		})
	}
	return docs, word() + " " + text(2) + " " + english[r.IntN(len(english))]
}

func itoa(i int) string {
	return string([]rune{rune('a' + i/676%26), rune('a' + i/26%26), rune('a' + i%26)})
}

func TestManyMaySearchAtOnce(t *testing.T) {
	x := search.New(shelf)
	want := ids(x.Search("小红书", nil, 0, 10))
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 100 {
				if got := ids(x.Search("小红书", nil, 0, 10)); !slices.Equal(got, want) {
					t.Errorf("%v", got)
				}
			}
		})
	}
	wait.Wait()
}

func TestLongQueriesAreCut(t *testing.T) {
	x := search.New(shelf)
	if got := ids(x.Search("battery "+strings.Repeat("長", 1<<20), nil, 0, 1)); !slices.Equal(got, []string{"battery-care"}) {
		t.Errorf("%v", got)
	}
	if got := x.Search(strings.Repeat("x", 300)+" battery", nil, 0, 1); len(got) != 0 {
		t.Errorf("%v", got)
	}
	for _, bad := range [][2]int{{-1, 5}, {0, 0}, {0, -1}} {
		if got := x.Search("battery", nil, bad[0], bad[1]); got != nil {
			t.Errorf("%v: %v", bad, got)
		}
	}
	if got := x.Search("battery", nil, 1<<40, 1<<40); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if x := search.New(nil); x.Len() != 0 || len(x.Search("a", nil, 0, 1)) != 0 {
		t.Error("an empty index finds something")
	}
}
