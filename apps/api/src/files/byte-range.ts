import { HttpProblem } from '../problems/http-problem.ts';

/** A range of a file, or all of it. */
export interface ByteRange {
  offset: number;
  length: number;
}

/**
 * Returns the range that a `Range` header asks for. Returns undefined for the whole file, which a server sends for a
 * header that it does not understand. Throws 416 for a range that the file does not have, and for several ranges.
 */
export function parseRange(header: string | undefined, size: number): ByteRange | undefined {
  const given = /^bytes=([\d\s,-]+)$/i.exec(header?.trim() ?? '')?.[1];
  if (given === undefined) return undefined;
  if (given.includes(',')) throw refused('Ask for one range at a time', size);
  const [, from = '', to = ''] = /^(\d*)-(\d*)$/.exec(given.trim()) ?? [];
  if (from === '' && to === '') return undefined;
  if (from !== '' && to !== '' && Number(to) < Number(from)) return undefined;
  const offset = from === '' ? Math.max(0, size - Number(to)) : Number(from);
  const end = from === '' || to === '' ? size : Math.min(size, Number(to) + 1);
  if (offset >= end) throw refused('The file does not have this range', size);
  return { offset, length: end - offset };
}

function refused(why: string, size: number): HttpProblem {
  return new HttpProblem(416, 'COMMAND_INVALID', `${why}; it has ${size} bytes.`, {
    headers: { 'content-range': `bytes */${size}`, 'accept-ranges': 'bytes' },
  });
}
