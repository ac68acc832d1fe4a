import type { KeeperFileOperation } from '../src/shell/keeper-operation.ts';
import type { FileCallEnd } from '../src/shell/shell-files.ts';

const NOTHING = Buffer.alloc(0);
const MODE = '644';

/** The files of a fake keeper by path, without directories. Operations other than these five do nothing. */
export class FakeFiles {
  readonly #contents = new Map<string, Buffer>();

  run(operation: KeeperFileOperation): Extract<FileCallEnd, { type: 'done' | 'failed' }> {
    const { path } = operation;
    const content = this.#contents.get(path);
    switch (operation.type) {
      case 'read': {
        if (content === undefined) return NOT_FOUND;
        const part = content.subarray(operation.offset, operation.offset + operation.length);
        return done(part, `${content.byteLength} ${MODE}`);
      }
      case 'write': {
        const { offset, data, renameTo = path } = operation;
        this.#contents.delete(path);
        this.#contents.set(renameTo, Buffer.concat([content?.subarray(0, offset) ?? NOTHING, data]));
        return done();
      }
      case 'list': {
        const directory = `${path.replace(/\/$/, '')}/`;
        const names = [...this.#contents.keys()].filter((name) => name.startsWith(directory)).sort();
        return done(names.map((name) => this.#record(name, name.slice(directory.length))).join(''));
      }
      case 'stat':
        return content === undefined && path !== '/' ? NOT_FOUND : done(this.#record(path, path));
      case 'remove':
        return this.#contents.delete(path) ? done() : NOT_FOUND;
      default:
        return done();
    }
  }

  /** Returns a record for parseFileRecords(): type, size, mode, time of change, name and target. */
  #record(path: string, name: string): string {
    return ['f', this.#contents.get(path)?.byteLength ?? 0, MODE, 0, name, ''].map((field) => `${field}\0`).join('');
  }
}

const NOT_FOUND = { type: 'failed', failure: 'not-found', stderr: NOTHING } as const;

const done = (stdout: string | Buffer = NOTHING, stderr = '') =>
  ({ type: 'done', stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) }) as const;
