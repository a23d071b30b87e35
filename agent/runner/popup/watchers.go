package popup

import "slices"

// Packages that ask for permissions. Old ones and those of makers among them.
var askers = []string{
	"com.android.permissioncontroller", "com.google.android.permissioncontroller",
	"com.android.packageinstaller", "com.google.android.packageinstaller",
	"com.samsung.android.permissioncontroller", "com.miui.securitycenter", "com.lbe.security.miui",
	"com.coloros.safecenter", "com.huawei.systemmanager", "com.vivo.permissionmanager",
}

// Texts are folded: small letters, no punctuation at the ends, Arabic without
// vowel signs. Chinese stands in both scripts where they differ.

// later are the buttons that put something off or decline it.
var later = []string{
	"not now", "later", "maybe later", "no thanks", "no, thanks", "remind me later", "ask me later", "skip", "dismiss", "no, thank you",
	"以后再说", "稍后", "稍后再说", "稍后提醒", "下次再说", "暂不", "不用了", "不，谢谢", "残忍拒绝", "以後再說", "稍後", "稍後再說", "不用，謝謝", "先不要",
	"ليس الآن", "لاحقا", "في وقت لاحق", "ربما لاحقا", "لا، شكرا", "لا شكرا", "تذكيري لاحقا", "تخطي",
	"ahora no", "más tarde", "no, gracias", "recordármelo más tarde", "omitir",
	"plus tard", "pas maintenant", "non merci", "non, merci", "ignorer",
	"später", "nicht jetzt", "nein danke", "nein, danke", "überspringen",
	"agora não", "mais tarde", "não, obrigado", "não, obrigada", "pular",
	"не сейчас", "позже", "нет, спасибо", "напомнить позже", "пропустить",
	"後で", "あとで", "今はしない", "スキップ",
	"나중에", "나중에 하기", "건너뛰기",
	"non ora", "più tardi", "no, grazie", "salta",
	"şimdi değil", "daha sonra", "hayır, teşekkürler", "atla",
	"nanti", "nanti saja", "lain kali", "tidak, terima kasih", "lewati",
	"अभी नहीं", "बाद में", "नहीं, धन्यवाद", "छोड़ें",
}

// skip are those that leave a tour.
var skip = []string{
	"skip", "skip tour", "skip intro", "skip tutorial", "跳过", "跳过引导", "跳過", "略過", "تخطي", "omitir", "saltar", "passer", "ignorer",
	"überspringen", "pular", "пропустить", "スキップ", "건너뛰기", "salta", "atla", "geç", "lewati", "छोड़ें",
}

// decline are those that refuse what an app would like to keep or send.
var decline = []string{
	"only necessary", "necessary only", "only essential", "essential only", "reject all", "decline all", "reject", "decline", "refuse", "disagree",
	"仅必要", "仅使用必要", "全部拒绝", "拒绝", "不同意", "全部拒絕", "拒絕", "僅必要",
	"الضرورية فقط", "رفض الكل", "رفض", "لا أوافق",
	"solo necesarias", "solo las necesarias", "rechazar todo", "rechazar todas", "rechazar",
	"tout refuser", "refuser", "continuer sans accepter",
	"nur notwendige", "nur erforderliche", "alle ablehnen", "ablehnen",
	"apenas necessários", "rejeitar todos", "recusar", "rejeitar",
	"только необходимые", "отклонить все", "отклонить",
	"すべて拒否", "拒否", "必須のみ", "모두 거부", "거부", "필수만", "rifiuta tutto", "rifiuta", "tümünü reddet", "reddet",
	"tolak semua", "tolak", "सभी अस्वीकार करें", "अस्वीकार करें",
}

// watchers is the list. Ids come from the sources of Android's own dialogs
// (AppNotRespondingDialog, AppErrorDialog, GrantPermissionsActivity,
// DeprecatedTargetSdkVersionDialog, ImmersiveModeConfirmation).
var watchers = []Watcher{
	{
		Name: "permission granted", Packages: askers, Consent: true,
		IDs: []string{
			"permission_allow_foreground_only_button", "permission_allow_button", "permission_allow_one_time_button",
			"permission_allow_selected_button", "permission_allow_all_button",
		},
		Buttons: []string{
			"while using the app", "only this time", "allow", "仅在使用中允许", "使用时允许", "允许", "允許", "أثناء استخدام التطبيق", "السماح", "سماح",
			"mientras se usa la app", "permitir", "lorsque vous utilisez l'appli", "autoriser", "bei nutzung der app", "zulassen",
			"durante o uso do app", "при использовании приложения", "разрешить", "アプリの使用時のみ", "許可", "앱 사용 중에만 허용", "허용",
		},
	},
	{
		Name: "terms accepted", Consent: true, Page: true,
		Says: []string{
			"terms of service", "terms of use", "terms and conditions", "privacy policy", "服务条款", "用户协议", "隐私政策", "服務條款", "隱私權政策",
			"شروط الخدمة", "شروط الاستخدام", "سياسة الخصوصية", "términos", "conditions d'utilisation", "nutzungsbedingungen", "termos de uso", "условия использования",
		},
		Buttons: []string{
			"accept", "agree", "i agree", "accept and continue", "agree and continue", "同意", "同意并继续", "同意並繼續", "我同意", "接受",
			"موافق", "أوافق", "قبول", "aceptar", "accepter", "akzeptieren", "zustimmen", "aceitar", "concordo", "принять", "同意する", "동의",
		},
	},
	{
		Name: "app not responding", Packages: []string{"android"},
		IDs: []string{"aerr_wait"},
	},
	{
		Name: "app crashed", Packages: []string{"android"},
		IDs: []string{"aerr_restart", "aerr_close"},
	},
	{
		Name: "permission declined", Packages: askers,
		IDs: []string{
			"permission_deny_button", "permission_deny_and_dont_ask_again_button", "permission_no_upgrade_button",
			"permission_no_upgrade_and_dont_ask_again_button", "permission_no_upgrade_one_time_button",
		},
		Buttons: []string{
			"don't allow", "deny", "不允许", "拒绝", "禁止", "不允許", "拒絕", "عدم السماح", "رفض", "no permitir", "denegar", "ne pas autoriser", "refuser",
			"nicht zulassen", "ablehnen", "não permitir", "negar", "не разрешать", "запретить", "отклонить", "許可しない", "허용 안함", "거부",
			"non consentire", "rifiuta", "izin verme", "reddet", "jangan izinkan", "tolak", "अनुमति न दें",
		},
	},
	{
		Name: "made for an older Android", Packages: []string{"android"},
		Says: []string{
			"older version of android", "旧版 android", "舊版 android", "إصدار أقدم من android", "versión anterior de android", "version antérieure d'android",
			"ältere version von android", "ältere android", "versão mais antiga do android", "версии android", "以前のバージョンの android", "이전 버전의 android",
		},
		IDs: []string{"button1"},
	},
	{
		Name: "full screen explained", Packages: []string{"com.android.systemui"},
		Says: []string{"full screen", "全屏", "全螢幕", "ملء الشاشة", "pantalla completa", "plein écran", "vollbild", "tela cheia", "полноэкранн", "全画面", "전체 화면"},
		IDs:  []string{"ok"},
	},
	{
		Name: "battery saver offered", Packages: []string{"com.android.systemui", "android"},
		Says: []string{
			"battery saver", "省电模式", "省電模式", "توفير شحن البطارية", "توفير طاقة البطارية", "ahorro de batería", "économiseur de batterie", "energiesparmodus",
			"economia de bateria", "режим энергосбережения", "バッテリー セーバー", "절전 모드",
		},
		IDs: []string{"button2"}, Buttons: later,
	},
	{
		Name: "password saving offered", Packages: []string{"com.google.android.gms", "com.android.systemui", "android", "com.samsung.android.samsungpass"},
		Says: []string{
			"save password", "save your password", "保存密码", "儲存密碼", "حفظ كلمة المرور", "guardar la contraseña", "enregistrer le mot de passe",
			"passwort speichern", "salvar senha", "сохранить пароль", "パスワードを保存", "비밀번호 저장", "비밀번호를 저장",
		},
		IDs: []string{"autofill_save_no"}, Buttons: append([]string{"never", "一律不", "永不", "مطلقا", "nunca", "jamais", "nie", "никогда", "使用しない"}, later...),
	},
	{
		Name: "rating asked for",
		Says: []string{
			"rate this app", "rate us", "rate our app", "rate the app", "enjoying", "write a review", "leave a review", "评分", "好评", "給我們評分", "評分",
			"تقييم", "قيم التطبيق", "قيمنا", "valora", "califica", "noter", "notez", "évaluer", "bewerte", "bewertung", "avalie", "avaliar", "оцените", "оценить", "評価",
			"평가", "valuta", "recensione", "değerlendir", "puan ver", "beri rating", "beri nilai", "रेटिंग",
		},
		Buttons: later,
	},
	{
		Name: "update offered",
		Says: []string{
			"update available", "new version", "update now", "update required", "update the app", "update to", "新版本", "更新", "升级", "升級", "تحديث", "إصدار جديد",
			"actualización", "actualizar", "nueva versión", "mise à jour", "nouvelle version", "mettre à jour", "aktualisier", "neue version", "update verfügbar",
			"atualização", "atualizar", "nova versão", "обновлен", "обновить", "новая версия", "アップデート", "업데이트", "aggiorna", "nuova versione",
			"güncelle", "yeni sürüm", "pembaruan", "versi baru", "अपडेट",
		},
		Buttons: append([]string{"暂不更新", "以后更新", "忽略此版本", "下次更新"}, later...),
	},
	{
		Name: "notifications asked for",
		Says: []string{
			"notification", "stay updated", "通知", "推送", "إشعارات", "الإشعارات", "notificaciones", "notificações", "benachrichtigung", "уведомлен", "알림",
			"notifiche", "bildirim", "notifikasi", "सूचनाएं",
		},
		Buttons: later,
	},
	{
		Name: "offer made",
		Says: []string{
			"coupon", "off your", "discount", "special offer", "newsletter", "subscribe", "premium", "free trial", "优惠", "折扣", "会员", "優惠", "折價券", "訂閱",
			"قسيمة", "خصم", "عرض خاص", "اشترك", "descuento", "oferta", "suscríbe", "réduction", "offre", "abonne", "rabatt", "angebot", "gutschein",
			"desconto", "cupom", "assine", "скидк", "подпис", "クーポン", "割引", "쿠폰", "할인", "sconto", "indirim", "diskon", "छूट",
		},
		Buttons: later,
	},
	{
		Name: "cookies",
		Says: []string{
			"cookie", "your privacy", "personal data", "personalised ads", "personalized ads", "隐私", "隱私", "个人信息", "ملفات تعريف الارتباط", "خصوصيتك",
			"privacidad", "vie privée", "datenschutz", "privatsphäre", "privacidade", "конфиденциальност", "プライバシー", "쿠키", "개인정보", "çerez",
		},
		Buttons: slices.Concat(decline, later),
	},
	{
		Name: "tour of the app", Page: true,
		Says: []string{
			"welcome", "get started", "next", "what's new", "tutorial", "tour", "欢迎", "开始使用", "下一步", "新功能", "立即体验", "歡迎", "مرحبا", "أهلا", "التالي", "ابدأ",
			"bienvenid", "siguiente", "empezar", "bienvenue", "suivant", "commencer", "willkommen", "weiter", "los geht", "bem-vind", "próximo", "avançar",
			"добро пожаловать", "далее", "начать", "ようこそ", "次へ", "はじめる", "환영", "다음", "시작하기", "benvenut", "avanti", "hoş geldin", "ileri",
			"selamat datang", "berikutnya", "mulai", "स्वागत", "आगे",
		},
		IDs: []string{"skip", "btn_skip", "skip_button", "button_skip", "tv_skip"}, Buttons: skip,
	},
}
