import type { Figures } from '../figures.ts';
import type { Plan } from '../plan.ts';
import type { RowName } from '../rows/row.ts';

// One question, a bar for each answer: how many commands a second do sessions run? The colours suit light and dark
// pages, whichever the page around it is.

const WIDTH = 760;
const LEFT = 220;
/** Room right of the longest bar, for its number. */
const RIGHT = 110;
const TOP = 84;
const STEP = 40;
const BAR = 24;

/** The bars from the first to the last, with what a reader knows them by. */
const BARS: readonly { row: RowName; name: string; isOurs?: true }[] = [
  { row: 'docker-exec', name: 'docker exec' },
  { row: 'shellfleet', name: 'Shellfleet', isOurs: true },
  { row: 'bullmq', name: 'its queue alone, no shell' },
  { row: 'docker-attach', name: 'a bare shell, no queue' },
];

const STYLE = `
text{font:15px system-ui,sans-serif;fill:#1f2328}.h{font-weight:600;font-size:20px}.v{font-variant-numeric:tabular-nums}
.n{fill:#59636e;font-size:13px}.o{font-weight:700}.p{fill:#fff;stroke:#d1d9e0}.b{fill:#afb8c1}.c{fill:#0969da}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.n{fill:#9198a1}.p{fill:#0d1117;stroke:#3d444d}.b{fill:#545d68}
.c{fill:#4493f8}}`;

/** Renders the chart. `made` names the run: its date, commit and machine. */
export function renderChart({ rows }: Figures, { few }: Plan, made: string): string {
  const bars = BARS.flatMap(({ row, name, isOurs }) => {
    const speed = rows[row]?.few?.commandsPerSecond?.median;
    return speed === undefined ? [] : [{ name, speed, kind: isOurs ? 'c' : 'b' }];
  });
  const most = Math.max(...bars.map(({ speed }) => speed));
  const drawn = bars.map(({ name, speed, kind }, index) => {
    const y = TOP + index * STEP;
    const width = (speed / most) * (WIDTH - LEFT - RIGHT);
    const weight = kind === 'c' ? 'o' : '';
    return [
      text(LEFT - 14, y + 5, name, weight, 'end'),
      `<rect class="${kind}" x="${LEFT}" y="${y - BAR / 2}" width="${Math.max(width, 2).toFixed(1)}" height="${BAR}" rx="3"/>`,
      text(LEFT + width + 10, y + 5, toCount(speed), `v ${weight}`.trim()),
    ].join('');
  });
  const height = TOP + bars.length * STEP + 14;
  const title = `Commands per second in ${few.sessions} sessions`;
  const desc = `${bars.map(({ name, speed }) => `${name}: ${toCount(speed)}`).join('; ')}. ${made}.`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title desc">
<title id="title">${escapeText(title)}</title>
<desc id="desc">${escapeText(desc)}</desc>
<style>${escapeText(STYLE)}</style>
<rect class="p" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
${text(24, 38, title, 'h')}
${text(WIDTH - 24, 38, 'longer is better', 'n', 'end')}
${drawn.join('\n')}
${text(WIDTH - 24, height - 14, made, 'n', 'end')}
</svg>
`;
}

const toCount = (speed: number): string => Math.round(speed).toLocaleString('en-US');
const text = (x: number, y: number, content: string, kind = '', anchor = 'start'): string =>
  `<text class="${kind}" x="${x.toFixed(1)}" y="${y}" text-anchor="${anchor}">${escapeText(content)}</text>`;

function escapeText(content: string): string {
  return content.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
