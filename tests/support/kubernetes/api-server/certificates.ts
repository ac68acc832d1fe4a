import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Key and certificate of a server, and the file with the certificate of the authority that signed it. */
export interface Certificates {
  key: string;
  cert: string;
  caFile: string;
}

/** Makes an authority and a certificate for these addresses in a directory. Both are valid for two days. */
export async function makeCertificates(directory: string, addresses: readonly string[]): Promise<Certificates> {
  const file = (name: string) => join(directory, name);
  await make(file('ca.key'), file('ca.crt'), 'kubernetes', [
    ...['-addext', 'basicConstraints=critical,CA:TRUE'],
    ...['-addext', 'keyUsage=critical,digitalSignature,keyCertSign'],
  ]);
  const names = addresses.map((address) => `${isIP(address) === 0 ? 'DNS' : 'IP'}:${address}`);
  await make(file('server.key'), file('server.crt'), 'kube-apiserver', [
    ...['-CA', file('ca.crt'), '-CAkey', file('ca.key')],
    ...['-addext', `subjectAltName=${names.join(',')}`],
    ...['-addext', 'basicConstraints=critical,CA:FALSE', '-addext', 'extendedKeyUsage=serverAuth'],
  ]);
  const [key, cert] = await Promise.all([readFile(file('server.key'), 'utf8'), readFile(file('server.crt'), 'utf8')]);
  return { key, cert, caFile: file('ca.crt') };
}

async function make(key: string, cert: string, name: string, options: readonly string[]): Promise<void> {
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-noenc', '-keyout', key];
  await run('openssl', ['req', '-x509', ...newKey, '-out', cert, '-days', '2', '-subj', `/CN=${name}`, ...options]);
}
