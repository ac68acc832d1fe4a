import type { Counts, KindSummary, RoundSummary, Summary } from './summarize.ts';

/** Renders one page without references to other files: the faults, their times, their cost and the violations. */
export function renderHtml(summary: Summary): string {
  const { totals, seed } = summary;
  const verdict = totals.violations === 0 ? 'No promise was broken' : `${totals.violations} violations`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Shellfleet chaos, seed ${seed}: ${verdict}</title>
<style>${STYLE}</style>
<h1 class="${totals.violations === 0 ? 'good' : 'bad'}">${verdict}</h1>
<p>Seed ${seed}, ${summary.rounds.length} rounds, from ${summary.startedAt} to ${summary.endedAt}. Replay one round:
<code>npm run chaos -- --seed ${seed} --round N</code>. The seed fixes the commands and the faults, not the interleaving of processes.</p>
${renderCounts(totals)}
<h2>Faults, and the time until sessions went on</h2>
<p>From the end of the fault to the next Result of every session that it touched and that had work then. The time that the command itself
takes, up to 1.5 s, is included.</p>
${renderKinds(summary.kinds)}
${summary.rounds.map(renderRound).join('\n')}
</html>
`;
}

const STYLE = `
:root { color-scheme: light dark; --line: #8884; --bar: #3b78c2; --fault: #d97706; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1080px; margin: 2rem auto; padding: 0 1rem; }
h1.good { color: #15803d; } h1.bad, .bad { color: #dc2626; }
table { border-collapse: collapse; margin: 1rem 0; } td, th { padding: .25rem .75rem; text-align: left; border-bottom: 1px solid var(--line); }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
svg { width: 100%; height: auto; background: #8881; } svg text { font: 11px system-ui, sans-serif; fill: currentColor; }
.counts { display: flex; flex-wrap: wrap; gap: 1rem; padding: 0; list-style: none; }
.counts li { padding: .5rem 1rem; background: #8882; border-radius: .5rem; } .counts b { display: block; font-size: 1.4rem; }
code { background: #8882; padding: .1rem .3rem; border-radius: .25rem; }`;

function renderCounts(counts: Counts): string {
  const shown: [string, number][] = [
    ['commands accepted', counts.commands],
    ['Results', counts.results],
    ['faults', counts.faults],
    ['submits refused, and repeated', counts.refusals],
    ['commands reported as lost', counts.losses],
    ['violations', counts.violations],
  ];
  return `<ul class="counts">${shown.map(([name, count]) => `<li><b>${count}</b>${name}</li>`).join('')}</ul>`;
}

function renderKinds(kinds: KindSummary[]): string {
  const rows = kinds.map(({ kind, event, times, notRun, recoveryMs }) => {
    const why = times === 0 ? `not run${notRun.length > 0 ? `: ${notRun.join('; ')}` : ' in these rounds'}` : '';
    const spread = recoveryMs === null ? ['', '', ''] : [recoveryMs.p50, recoveryMs.p95, recoveryMs.most];
    const numbers = [times, ...spread].map((value) => `<td class="number">${value}</td>`).join('');
    return `<tr><td>${kind}</td><td>${escapeHtml(event).replaceAll(/`(.*?)`/g, '<code>$1</code>')}</td>${numbers}<td>${escapeHtml(why)}</td></tr>`;
  });
  const heads = ['times', 'p50 ms', 'p95 ms', 'most ms'].map((name) => `<th class="number">${name}</th>`).join('');
  return `<table><tr><th>fault</th><th>row of the promises</th>${heads}<th></th></tr>${rows.join('')}</table>`;
}

function renderRound(round: RoundSummary): string {
  const broken = round.broken.map(({ rule, session, text }) => `<li>${escapeHtml(`${rule} ${session}: ${text}`)}</li>`);
  return `<h2>Round ${round.index}: ${escapeHtml(round.kind)}</h2>
<p>${round.commands} commands, ${round.results} Results, ${round.faults} faults, ${round.losses} lost, ${round.refusals} refused and repeated.
${round.violations === 0 ? 'No violation.' : `<strong class="bad">${round.violations} violations</strong>`}</p>
${renderTimeline(round)}
${broken.length === 0 ? '' : `<ul class="bad">${broken.join('')}</ul>`}`;
}

const LEFT = 150;
const WIDTH = 1_000;
const ROW = 18;
const CHART = 70;

/** Renders a row for each kind of fault, and below them the number of Results in each second. */
function renderTimeline({ timeline, startedAt, endedAt, resultsPerSecond }: RoundSummary): string {
  const kinds = [...new Set(timeline.map(({ kind }) => kind))].sort();
  const seconds = Math.max(1, (endedAt - startedAt) / 1_000);
  const x = (at: number) => LEFT + ((at - startedAt) / 1_000 / seconds) * (WIDTH - LEFT);
  const bars = timeline
    .filter(({ notRun }) => notRun === undefined)
    .map(({ kind, target, from, to }) => {
      const end = Math.min(to, endedAt);
      const title = `${kind} of ${target}, second ${((from - startedAt) / 1_000).toFixed(1)} to ${((end - startedAt) / 1_000).toFixed(1)}`;
      const y = kinds.indexOf(kind) * ROW + 3;
      const width = Math.max(3, x(end) - x(from));
      return `<rect x="${x(from).toFixed(1)}" y="${y}" width="${width.toFixed(1)}" height="${ROW - 6}" rx="2" fill="var(--fault)"><title>${escapeHtml(title)}</title></rect>`;
    });
  const labels = kinds.map((kind, index) => `<text x="4" y="${index * ROW + 13}">${kind}</text>`);
  const top = kinds.length * ROW + 8;
  const most = Math.max(1, ...resultsPerSecond);
  const columns = resultsPerSecond.map((count, second) => {
    const height = (count / most) * CHART;
    const left = x(startedAt + second * 1_000);
    const width = Math.max(1, (WIDTH - LEFT) / seconds - 1);
    return `<rect x="${left.toFixed(1)}" y="${(top + CHART - height).toFixed(1)}" width="${width.toFixed(1)}" height="${height.toFixed(1)}" fill="var(--bar)"><title>second ${second}: ${count} Results</title></rect>`;
  });
  const ticks = Array.from({ length: Math.floor(seconds / 10) + 1 }, (_, index) => index * 10).map((second) => {
    const at = x(startedAt + second * 1_000).toFixed(1);
    return `<line x1="${at}" x2="${at}" y1="0" y2="${top + CHART}" stroke="var(--line)"/><text x="${at}" y="${top + CHART + 14}">${second} s</text>`;
  });
  const caption = `<text x="4" y="${top + CHART - 4}">Results a second (${most})</text>`;
  return `<svg viewBox="0 0 ${WIDTH + 30} ${top + CHART + 20}" role="img" aria-label="Faults and Results over time">${ticks.join('')}${labels.join('')}${bars.join('')}${columns.join('')}${caption}</svg>`;
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
