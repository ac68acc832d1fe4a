// A registry of Python and Node packages in the process of the test, with one package of each kind.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { crc32 } from 'node:zlib';

export interface PackageRegistry extends AsyncDisposable {
  readonly port: number;
  /** Requests so far: `METHOD path`. */
  readonly requests: string[];
}

const WHEEL = 'greeting-1.0-py3-none-any.whl';
const wheelFiles: [string, string][] = [
  ['greeting.py', 'TEXT = "hello from a wheel"\n'],
  ['greeting-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n'],
  ['greeting-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n'],
  [
    'greeting-1.0.dist-info/RECORD',
    'greeting.py,,\ngreeting-1.0.dist-info/METADATA,,\ngreeting-1.0.dist-info/WHEEL,,\ngreeting-1.0.dist-info/RECORD,,\n',
  ],
];

/** Starts the registry on 127.0.0.1. `host` is the name that its clients use. */
export async function startPackageRegistry(host: string): Promise<PackageRegistry> {
  const wheel = toZip(wheelFiles);
  const tarball = await packNodePackage();
  const requests: string[] = [];
  const server = createServer((incoming, answer) => {
    requests.push(`${incoming.method} ${incoming.url}`);
    const { port } = server.address() as { port: number };
    const files: Record<string, [string, string | Buffer]> = {
      '/': ['text/plain', 'the registry\n'],
      '/simple/greeting/': ['text/html', `<a href="/${WHEEL}">${WHEEL}</a>`],
      [`/${WHEEL}`]: ['application/octet-stream', wheel],
      '/greeting': ['application/json', nodeManifest(`http://${host}:${port}/greeting-1.0.0.tgz`, tarball)],
      '/greeting-1.0.0.tgz': ['application/octet-stream', tarball],
    };
    const [type, body] = files[incoming.url ?? ''] ?? [];
    // This reply never ends, so its connection is still open when the command ends.
    if (incoming.url === '/forever') answer.write('begun\n');
    else if (type === undefined) answer.writeHead(404).end();
    else answer.writeHead(200, { 'content-type': type }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as { port: number }).port,
    requests,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function nodeManifest(tarballUrl: string, tarball: Buffer): string {
  const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
  const version = { name: 'greeting', version: '1.0.0', main: 'index.js', dist: { tarball: tarballUrl, integrity } };
  return JSON.stringify({ name: 'greeting', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': version } });
}

async function packNodePackage(): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), 'sf-package-'));
  await mkdir(join(directory, 'package'));
  const manifest = { name: 'greeting', version: '1.0.0', main: 'index.js' };
  await writeFile(join(directory, 'package', 'package.json'), JSON.stringify(manifest));
  await writeFile(join(directory, 'package', 'index.js'), "module.exports = 'hello from a tarball';\n");
  await promisify(execFile)('tar', ['-czf', 'p.tgz', 'package'], { cwd: directory });
  const tarball = await readFile(join(directory, 'p.tgz'));
  await rm(directory, { recursive: true });
  return tarball;
}

/** Returns a ZIP archive of uncompressed files: each file with its header, then the directory of the archive. */
function toZip(files: [string, string][]): Buffer {
  const parts: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const [path, text] of files) {
    const name = Buffer.from(path);
    const data = Buffer.from(text);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    common.writeUInt16LE(0x21, 8); // 1980-01-01
    common.writeUInt32LE(crc32(data), 10);
    common.writeUInt32LE(data.length, 14);
    common.writeUInt32LE(data.length, 18);
    common.writeUInt16LE(name.length, 22);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, name, data]);
    const entry = Buffer.alloc(14);
    entry.writeUInt32LE(0o644 << 16, 6);
    entry.writeUInt32LE(at, 10);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x03'), common, entry, name]));
    parts.push(local);
    at += local.length;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(files.length, 4);
  end.writeUInt16LE(files.length, 6);
  end.writeUInt32LE(entries.length, 8);
  end.writeUInt32LE(at, 12);
  return Buffer.concat([...parts, entries, Buffer.from('PK\x05\x06'), end]);
}
