// Every word the page says, in English, German and Chinese, as data. {name} is filled in.

/** @type {Object<string, [string, string, string]>} */
export const TEXTS = {
  "title": ["glassformer: translate", "glassformer: übersetzen", "glassformer：翻译"],
  "heading": ["Translate a text", "Text übersetzen", "翻译文本"],
  "language": ["Language of this page", "Sprache dieser Seite", "界面语言"],
  "theme": ["Light or dark", "Hell oder dunkel", "浅色或深色"],
  "theme.light": ["light", "hell", "浅色"],
  "theme.dark": ["dark", "dunkel", "深色"],
  "top.look": ["Inside the model", "Blick ins Modell", "模型内部"],

  "from": ["Translate from", "Ausgangssprache", "源语言"],
  "to": ["Translate into", "Zielsprache", "目标语言"],
  "detect": ["Detect language", "Sprache erkennen", "检测语言"],
  "detected": ["{language}, detected", "{language} erkannt", "检测到{language}"],
  "unsure": [
    "This text seems to be in none of the languages here. It is read as {language}.",
    "Dieser Text scheint in keiner der Sprachen zu sein, die es hier gibt. Er wird als {language} gelesen.",
    "这段文字似乎不是这里支持的语言，暂且当作{language}来翻译。",
  ],
  "swap": ["Swap languages", "Sprachen tauschen", "互换语言"],

  "source.label": ["Text to translate", "Zu übersetzender Text", "要翻译的文本"],
  "source.placeholder": ["Type or paste a text", "Text eingeben oder einfügen", "输入或粘贴文本"],
  "source.placeholderFile": [
    "Type or paste a text, or drop a file here",
    "Text eingeben, einfügen oder eine Datei hierher ziehen",
    "输入或粘贴文本，也可以把文件拖到这里",
  ],
  "target.label": ["Translation", "Übersetzung", "译文"],
  "target.empty": ["Translation", "Übersetzung", "译文"],
  "target.keys": [
    "Arrow keys go from word to word, Enter offers other wordings.",
    "Mit den Pfeiltasten von Wort zu Wort, mit der Eingabetaste zu anderen Formulierungen.",
    "用方向键逐词移动，按回车查看其他译法。",
  ],
  "characters": ["{n} characters", "{n} Zeichen", "{n} 个字符"],
  "clear": ["Clear the text", "Text löschen", "清空"],
  "copy": ["Copy", "Kopieren", "复制"],
  "copied": ["Copied", "Kopiert", "已复制"],
  "done": ["Translated.", "Übersetzt.", "翻译完成。"],
  "progress": ["{done} of {all} paragraphs", "{done} von {all} Absätzen", "已完成 {done}/{all} 段"],
  "word.from": ["from: {words}", "aus: {words}", "译自：{words}"],
  "word.doubted": ["The model is not sure of this word.", "Bei diesem Wort ist das Modell unsicher.", "模型对这个词没有把握。"],
  "sentence.sure": [
    "Of translations that the model finds as likely as this one, about {percent} % come close to a person's.",
    "Von Übersetzungen, die dem Modell so wahrscheinlich sind, kommen etwa {percent} % einer menschlichen nahe.",
    "模型认为可能性与此相当的译文中，约有 {percent}% 接近人工译文。",
  ],

  "look": ["Look inside", "Hineinschauen", "看看内部"],
  "look.step": ["Look inside: model {n} of {of}", "Hineinschauen: Modell {n} von {of}", "看看内部：模型 {n}/{of}"],
  "look.says": [
    "See how the model translates this sentence, number by number",
    "Zeigt Zahl für Zahl, wie das Modell diesen Satz übersetzt",
    "逐个数字地看模型如何翻译这句话",
  ],

  "menu.instead": ["Instead of", "Statt", "替换"],
  "menu.asking": ["Looking for other wordings …", "Andere Formulierungen werden gesucht …", "正在寻找其他译法……"],
  "menu.sentence": ["The sentence, said differently", "Der Satz, anders gesagt", "整句换个说法"],
  "menu.first": ["Back to the first translation", "Zurück zur ersten Übersetzung", "恢复最初的译文"],
  "menu.none": [
    "The model knows no other wording that is likely here.",
    "Das Modell kennt hier keine andere naheliegende Formulierung.",
    "模型在这里没有其他合适的译法。",
  ],

  "file.choose": ["Translate a file", "Datei übersetzen", "翻译文件"],
  "file.working": ["being translated …", "wird übersetzt …", "正在翻译……"],
  "file.stop": ["Stop", "Abbrechen", "停止"],
  "file.save": ["Save {name}", "{name} speichern", "保存 {name}"],
  "file.away": ["Remove from the list", "Aus der Liste entfernen", "从列表中移除"],
  "file.kind": [
    "This kind of file cannot be translated here. These can: {kinds}",
    "Dateien dieser Art lassen sich hier nicht übersetzen. Möglich sind: {kinds}",
    "这里不能翻译这种文件。可以翻译的有：{kinds}",
  ],

  "key": ["Key", "Schlüssel", "密钥"],
  "key.says": [
    "This server asks for a key. Whoever runs it can give you one.",
    "Dieser Server verlangt einen Schlüssel. Wer ihn betreibt, kann einen ausgeben.",
    "此服务器需要密钥，可向管理者索取。",
  ],

  "error.offline": [
    "The server does not answer. Your text is safe; it is tried again in a moment.",
    "Der Server antwortet nicht. Der Text bleibt erhalten; gleich folgt ein neuer Versuch.",
    "服务器没有回应。您的文本不会丢失，稍后会自动重试。",
  ],
  "error.busy": [
    "Many are waiting just now. It is tried again in {n} s.",
    "Gerade warten viele. In {n} s folgt ein neuer Versuch.",
    "现在等候的人较多，{n} 秒后自动重试。",
  ],
  "error.large": [
    "That is too much at once. Try it in parts.",
    "Das ist zu viel auf einmal. In Teilen geht es.",
    "一次太多了，请分几部分翻译。",
  ],
  "error.noKey": [
    "This server translates only for those who have a key. Enter yours above.",
    "Dieser Server übersetzt nur mit Schlüssel. Bitte oben eingeben.",
    "此服务器只为持有密钥的人翻译，请在上方输入。",
  ],
  "error.wrongKey": [
    "The server does not know this key. Is it complete?",
    "Diesen Schlüssel kennt der Server nicht. Ist er vollständig?",
    "服务器不认识这个密钥，请检查是否完整。",
  ],
  "error.refused": ["The server could not do this: {why}", "Der Server konnte das nicht: {why}", "服务器无法完成：{why}"],
  "error.page": [
    "Something went wrong on this page: {why}",
    "Auf dieser Seite ist etwas schiefgegangen: {why}",
    "页面出错了：{why}",
  ],

  "foot": [
    "Translated by the server that this page comes from. Nothing is sent anywhere else.",
    "Übersetzt wird auf dem Server, von dem diese Seite kommt. Nichts geht anderswohin.",
    "翻译由提供此页面的服务器完成，内容不会发送到别处。",
  ],
  "keys": [
    "Click a word of the translation for other wordings. Alt+Shift with S swaps, with C copies, with X clears.",
    "Ein Klick auf ein Wort zeigt andere Formulierungen. Alt+Umschalt mit S tauscht, mit C kopiert, mit X löscht.",
    "点击译文中的词可查看其他译法。Alt+Shift 加 S 互换，加 C 复制，加 X 清空。",
  ],
};
