/** What the element says itself, in one language. */
export interface Labels {
  readonly ad: string;
  readonly open: string;
  readonly close: string;
  readonly previous: string;
  readonly next: string;
  /** Of the corner, a button that is pressed when it is folded. */
  readonly fold: string;
  readonly folded: string;
  readonly unfolded: string;
  readonly more: string;
  position(page: number, of: number): string;
}

const ORDER = ['ad', 'open', 'close', 'previous', 'next', 'fold', 'folded', 'unfolded', 'more'];

/** A language a line, in the order of ORDER; "Page 2 of 6" comes last. */
const TEXTS: Readonly<Record<string, string>> = {
  en: 'Advertisement|Open|Close|Previous page|Next page|Fold the corner to find this page again|Corner folded. You will meet this page here again.|Corner unfolded.|Learn more|Page % of #',
  ja: '広告|開く|閉じる|前のページ|次のページ|ページの角を折って、あとでまた読む|角を折りました。次に来たときもこのページが開きます。|角を戻しました。|詳しく見る|#ページ中%ページ',
  de: 'Anzeige|Öffnen|Schließen|Vorherige Seite|Nächste Seite|Ecke umknicken und die Seite wiederfinden|Ecke umgeknickt. Diese Seite begegnet Ihnen hier wieder.|Ecke geglättet.|Mehr erfahren|Seite % von #',
  fr: 'Publicité|Ouvrir|Fermer|Page précédente|Page suivante|Corner la page pour la retrouver|Page cornée. Vous la retrouverez ici.|Page décornée.|En savoir plus|Page % sur #',
  es: 'Publicidad|Abrir|Cerrar|Página anterior|Página siguiente|Doblar la esquina para volver a encontrar la página|Esquina doblada. Volverá a encontrar esta página aquí.|Esquina desdoblada.|Más información|Página % de #',
  it: 'Pubblicità|Apri|Chiudi|Pagina precedente|Pagina successiva|Piega l’angolo per ritrovare la pagina|Angolo piegato. Ritroverai qui questa pagina.|Angolo disteso.|Scopri di più|Pagina % di #',
  pt: 'Publicidade|Abrir|Fechar|Página anterior|Página seguinte|Dobrar o canto para reencontrar a página|Canto dobrado. Esta página voltará a aparecer aqui.|Canto desdobrado.|Saber mais|Página % de #',
  ar: 'إعلان|فتح|إغلاق|الصفحة السابقة|الصفحة التالية|اطوِ الزاوية لتجد هذه الصفحة مجددًا|طُويت الزاوية. ستجد هذه الصفحة هنا مجددًا.|أُعيدت الزاوية.|اعرف المزيد|الصفحة % من #',
  zh: '广告|打开|关闭|上一页|下一页|折角，以便再次找到此页|已折角。您会在这里再次看到此页。|已展平折角。|了解更多|第 % 页，共 # 页',
  ko: '광고|열기|닫기|이전 페이지|다음 페이지|모서리를 접어 이 페이지를 다시 보기|모서리를 접었습니다. 여기서 이 페이지를 다시 만나게 됩니다.|모서리를 폈습니다.|자세히 보기|#페이지 중 %페이지',
};

/** The labels in a language (BCP 47), or in English. */
export const getLabels = (language: string): Labels => {
  const primary = language.toLowerCase().split('-', 1)[0]!;
  const known = Object.keys(TEXTS).includes(primary) ? primary : 'en';
  const texts = TEXTS[known]!.split('|');
  const labels: Record<string, unknown> = {
    position: (page: number, of: number) =>
      texts[ORDER.length]!.replace('%', String(page)).replace('#', String(of)),
  };
  ORDER.forEach((key, i) => {
    labels[key] = texts[i];
  });
  return labels as unknown as Labels;
};
