/** Text that a terminal received, and its time in ms from the start of the recording. */
export type Chunk = { atMs: number; text: string };

/** Line of a recording, and the time when it was complete. */
export type Line = { atMs: number; text: string };

const LINE_HEIGHT = 19;
const CHARACTER_WIDTH = 7.83;
const MARGIN = 16;
/** Pause at the last picture before the recording repeats. */
const PAUSE_MS = 6_000;

/** Returns the lines up to the shell's `exit`, of plain text with line breaks and no other control sequences. */
export function toLines(chunks: readonly Chunk[]): Line[] {
  const lines: Line[] = [];
  let text = '';
  for (const chunk of chunks)
    for (const character of chunk.text.replaceAll('\r', '')) {
      if (character !== '\n') text += character;
      else if (text === '$ exit') return lines;
      else {
        lines.push({ atMs: chunk.atMs, text });
        text = '';
      }
    }
  return lines;
}

/** Renders lines as an animated SVG. Readers who ask for no motion see the last picture. */
export function renderRecording(recorded: readonly Line[], columns: number): string {
  const lines = recorded.flatMap((line) => wrapLine(line, columns));
  const width = Math.ceil(2 * MARGIN + columns * CHARACTER_WIDTH);
  const height = 2 * MARGIN + lines.length * LINE_HEIGHT;
  const lengthMs = (lines.at(-1)?.atMs ?? 0) + PAUSE_MS;
  const frames = lines.map(({ atMs }, index) => {
    const percent = ((100 * atMs) / lengthMs).toFixed(2);
    return `@keyframes l${index}{0%,${percent}%{opacity:0}${percent}1%,100%{opacity:1}}`;
  });
  const texts = lines.map(({ text }, index) => {
    const y = MARGIN + (index + 1) * LINE_HEIGHT - 5;
    const name = text.startsWith('$ ') ? 'typed' : 'printed';
    const style = `animation-name:l${index}`;
    return `<text x="${MARGIN}" y="${y}" class="${name}" style="${style}">${escapeXml(text)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title">
<title id="title">A terminal: a shell keeps its state, survives the kill of its worker, and waits for an approval</title>
<style>
text{font:13px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;white-space:pre;animation:${lengthMs.toFixed(0)}ms step-end infinite}
.typed{fill:#e6edf3}.printed{fill:#9fb3c8}
@media(prefers-reduced-motion:reduce){text{animation:none}}
${frames.join('\n')}
</style>
<rect width="100%" height="100%" rx="8" fill="#0d1117"/>
${texts.join('\n')}
</svg>
`;
}

/** Breaks a line like a terminal of this width. */
function wrapLine({ atMs, text }: Line, columns: number): Line[] {
  const rows = text.match(new RegExp(`.{1,${columns}}`, 'g')) ?? [''];
  return rows.map((row) => ({ atMs, text: row }));
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
