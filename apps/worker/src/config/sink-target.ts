import { z } from 'zod';

/** Where lines go. */
export type SinkTarget =
  | { type: 'file'; path: string }
  | { type: 'unix'; path: string }
  | { type: 'tcp'; host: string; port: number };

/** Address of a sink. */
export const sinkSchema = z.string().transform((text, context): SinkTarget => {
  const target = parseTarget(text);
  if (target !== undefined) return target;
  context.addIssue({ code: 'custom', message: 'must be file:///PATH, unix:///PATH or tcp://HOST:PORT' });
  return z.NEVER;
});

/** Parses the address of a sink. Returns undefined for other text. */
function parseTarget(text: string): SinkTarget | undefined {
  const [, type, path] = /^(file|unix):\/\/(\/.+)$/.exec(text) ?? [];
  if (path !== undefined) return { type: type === 'file' ? 'file' : 'unix', path };
  const [, host, bracketed, port] = /^tcp:\/\/(?:([^\s/@:[\]]+)|\[([0-9a-fA-F:.]+)\]):(\d{1,5})$/.exec(text) ?? [];
  const name = host ?? bracketed;
  if (name === undefined || !(Number(port) >= 1 && Number(port) <= 65_535)) return undefined;
  return { type: 'tcp', host: name, port: Number(port) };
}
