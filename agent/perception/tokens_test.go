package perception

import "testing"

// The counts are of js-tiktoken 1.0.21, o200k_base and cl100k_base.
func TestTokensAreEstimatedForEveryScript(t *testing.T) {
	for name, c := range map[string]struct {
		text          string
		o200k, cl100k int
	}{
		"Latin":             {"The quick brown fox jumps over the lazy dog.", 10, 10},
		"German":            {"Der schnelle Fuchs läuft über die große Brücke.", 11, 14},
		"Polish":            {"Proszę sprawdzić adres dostawy przed zapłatą.", 14, 15},
		"Russian":           {"Пожалуйста, проверьте адрес доставки перед оплатой.", 13, 19},
		"Greek":             {"Ελέγξτε τη διεύθυνση παράδοσης πριν πληρώσετε.", 18, 45},
		"Arabic":            {"يرجى التحقق من عنوان التسليم قبل الدفع.", 12, 25},
		"Hebrew":            {"נא לבדוק את כתובת המשלוח לפני התשלום.", 13, 33},
		"Hindi":             {"भुगतान से पहले पता जाँच लें।", 10, 29},
		"Thai":              {"โปรดตรวจสอบที่อยู่ก่อนชำระเงิน", 11, 29},
		"Chinese":           {"请在结算之前确认您的收货地址和联系电话。", 13, 16},
		"Japanese":          {"お支払いの前にお届け先のご住所をご確認ください。", 16, 26},
		"Korean":            {"결제하기 전에 배송 주소와 전화번호를 확인해 주세요.", 14, 20},
		"emoji":             {"😀🚀🌻👍🎉🐶🍕🏠", 14, 23},
		"an element":        {"[3] item \"Kettle, £24.00\" id=\"com.phonerack.shop:id/row\" clickable\n", 26, 26},
		"a Chinese element": {"[4] item \"电热水壶, ¥24.00\" id=\"com.phonerack.store:id/row\" clickable\n", 29, 31},
		"an Arabic element": {"[4] item \"غلاية كهربائية\" id=\"com.phonerack.store:id/row\" clickable\n", 24, 29},
		"a screen":          {"screen 7: app com.phonerack.shop activity .MainActivity size 1080x2400 keyboard hidden\n", 24, 23},
	} {
		t.Run(name, func(t *testing.T) {
			got := Tokens(c.text)
			if low, high := min(c.o200k, c.cl100k)*4/5, max(c.o200k, c.cl100k)*5/4; got < low || got > high {
				t.Errorf("%d tokens, tokenizers count %d and %d", got, c.o200k, c.cl100k)
			}
		})
	}
}

func TestABareScreenCostsFiveTokens(t *testing.T) {
	if got := Tokens((&Scene{Generation: 7}).Prompt()); got != 5 { // screen, 7, :, keyboard, hidden
		t.Errorf("a bare screen line is %d tokens", got)
	}
}
