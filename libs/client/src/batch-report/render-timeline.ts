import { formatCount, formatEdgeMs, formatMs, formatShare } from './format.ts';
import { type Html, html } from './html.ts';
import { fixed, timeTicks } from './render-charts.ts';
import { type HostTimeline, TIMELINE_BINS, type Timeline, VERDICTS } from './timeline.ts';

/** Hosts that are drawn. A fleet with more shows those with the most tasks. */
const MOST_HOSTS = 64;
/** Width of a strip in the units of its inner SVG. */
const WIDTH = 1_000;
/** Height of a strip that shows a load. */
const LOAD_HEIGHT = 48;

/** Returns the section with a strip for each host. */
export function renderTimeline(timeline: Timeline | undefined): Html {
  if (timeline === undefined)
    return html`<section id="timeline"><h2>Timeline</h2><p class="muted">No task was on a host.</p></section>`;
  const { lengthMs } = timeline;
  const hosts = drawnHosts(timeline);
  const ticks = timeTicks(lengthMs);
  const mostLoad = Math.max(...hosts.map(({ load }) => Math.max(...(load ?? [0]))));
  const lanes = hosts.reduce((sum, { most }) => sum + most, 0);
  const laneHeight = lanes <= 64 ? 12 : lanes <= 200 ? 7 : 4;
  const strips = hosts.map((host, index) => {
    const height = host.load === undefined ? host.most * laneHeight : LOAD_HEIGHT;
    const grid = ticks.map(({ x }) => html`<line x1="${x}%" x2="${x}%" y1="0" y2="100%"/>`);
    return html`<div class="host"><h3>${host.hostId}</h3><p class="muted">${describeHost(host, lengthMs)}</p>
<svg class="strip" height="${height}" data-host="${index}" data-lane-height="${laneHeight}" role="img" aria-label="${host.hostId}: ${describeHost(host, lengthMs)}">${grid}<svg width="100%" height="${height}" viewBox="0 0 ${WIDTH} ${height}" preserveAspectRatio="none">${host.load === undefined ? bars(host, lengthMs, laneHeight) : area(host.load, mostLoad)}</svg></svg></div>`;
  });
  const labels = ticks.map(({ ms, x }, index) => {
    const anchor = index === 0 ? 'start' : Number(x) > 96 ? 'end' : 'middle';
    return html`<text x="${x}%" y="14" text-anchor="${anchor}">${formatEdgeMs(ms)}</text>`;
  });
  return html`<section id="timeline"><h2>Timeline</h2><p class="muted">${explain(timeline, mostLoad)}</p>
${hosts.length < timeline.hosts.length ? html`<p class="note">The ${MOST_HOSTS} hosts with the most tasks are shown, of ${formatCount(timeline.hosts.length)}.</p>` : undefined}
${mostLoad === 0 ? legend() : undefined}<div class="strips">${strips}<svg class="axis" height="18" aria-hidden="true">${labels}</svg></div></section>`;
}

/** Returns the hosts that are drawn, in the order of their ids. */
export function drawnHosts({ hosts }: Timeline): HostTimeline[] {
  const drawn = new Set(hosts.toSorted((a, b) => b.stays - a.stays).slice(0, MOST_HOSTS));
  return hosts.filter((host) => drawn.has(host));
}

function legend(): Html {
  const keys = VERDICTS.map(
    (verdict) => html`<li><span class="key ${verdict}" aria-hidden="true"></span>${verdict}</li>`,
  );
  return html`<ul class="legend">${keys}</ul>`;
}

function explain({ hosts, lengthMs }: Timeline, mostLoad: number): string {
  const times = `${formatMs(lengthMs)} by the clock of Redis.`;
  if (hosts[0]?.load !== undefined)
    return `Sessions of tasks at one time on each host, ${fixed(mostLoad)} at most, over ${times}`;
  return `Each bar is the time for which a task had a slot of the host: its last attempt, and a grade in a fresh session as a bar of its own; ${times} Select a bar to see its task.`;
}

function describeHost({ stays, most, busyMs }: HostTimeline, lengthMs: number): string {
  return `${formatCount(stays)} sessions, at most ${formatCount(most)} at one time, ${formatShare(busyMs / (lengthMs * most))} of those slots in use`;
}

/** Returns a path for each verdict, with all its bars. */
function bars({ bars = [] }: HostTimeline, lengthMs: number, laneHeight: number): Html[] {
  return VERDICTS.map((verdict) => {
    const shapes = bars
      .filter((bar) => bar.verdict === verdict)
      .map(({ lane, from, to }) => {
        const width = fixed(Math.max(0.8, ((to - from) * WIDTH) / lengthMs - 0.3));
        return `M${fixed((from * WIDTH) / lengthMs)} ${lane * laneHeight + 1}h${width}v${laneHeight - 2}h-${width}z`;
      });
    return html`<path class="${verdict}" d="${shapes.join('')}"/>`;
  });
}

function area(load: readonly number[], most: number): Html {
  const step = WIDTH / TIMELINE_BINS;
  const points = load.map(
    (value) => `V${fixed(LOAD_HEIGHT - (LOAD_HEIGHT * value) / Math.max(most, 1e-9))}h${fixed(step)}`,
  );
  return html`<path class="load" d="M0 ${LOAD_HEIGHT}${points.join('')}V${LOAD_HEIGHT}z"/>`;
}
