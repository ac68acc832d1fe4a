import { join } from 'node:path';
import { type Node, SyntaxKind, type TypeReferenceNode } from 'typescript/unstable/ast';
import { API, type Checker, type Project, type Symbol as Sym, SymbolFlags, type Type } from 'typescript/unstable/sync';
import { root } from '../steps.ts';

export interface TypeEntry {
  name: string;
  text: string;
  /** Fields of an object type. Empty for every other type. */
  fields: FieldEntry[];
  /** Text of the type in TypeScript, unless it is an object type. */
  is: string;
}

export interface FieldEntry {
  name: string;
  optional: boolean;
  type: string;
  text: string;
  default: string | undefined;
  limit: string | undefined;
  isMethod: boolean;
}

type MemberNode = Node & { name?: Node; body?: Node };

/** Default at the end of a docstring. Docstrings here have no tag for defaults. */
const DEFAULT_AT_END = /(?<=^|\s)Default: ([^\n]+)\.$/;

/** Returns every type that the SDK exports, with the docstrings that the compiler reads. */
export function readTypes(): TypeEntry[] {
  return withProject('libs/client/tsconfig.json', (project) => {
    const reader = new Reader(project);
    return reader
      .exportsOf('libs/client/src/index.ts')
      .filter((symbol) => (symbol.flags & (SymbolFlags.Interface | SymbolFlags.TypeAlias)) !== 0)
      .map((symbol) => reader.read(symbol));
  });
}

/** Exported class of the SDK, or interface with only methods, with its public members. */
export interface ClassEntry {
  name: string;
  text: string;
  members: { name: string; signature: string; text: string }[];
}

/** Returns every class that the SDK exports or whose instances a public property holds. */
export function readClasses(): ClassEntry[] {
  return withProject('libs/client/tsconfig.json', (project) => {
    const reader = new Reader(project);
    return reader
      .exportsOf('libs/client/src/index.ts')
      .filter((symbol) => (symbol.flags & SymbolFlags.Class) !== 0 || reader.hasOnlyMethods(symbol))
      .map((symbol) => reader.readClass(symbol));
  });
}

/** Returns names of types that public signatures of the SDK use and the SDK does not export. */
export function readUnexported(): string[] {
  return withProject('libs/client/tsconfig.json', (project) => {
    const reader = new Reader(project);
    const symbols = reader.exportsOf('libs/client/src/index.ts');
    const names = new Set(symbols.map(({ name }) => name));
    const used = symbols.flatMap((symbol) => reader.namedIn(symbol).map((name) => `${symbol.name}: ${name}`));
    return [...new Set(used)].filter((use) => !names.has(use.split(': ')[1] ?? '')).toSorted();
  });
}

function withProject<T>(config: string, read: (project: Project) => T): T {
  const api = new API({ cwd: root });
  try {
    const path = join(root, config);
    const project = api.updateSnapshot({ openProjects: [path] }).getProject(path);
    if (project === undefined) throw new Error(`The compiler did not open ${config}.`);
    return read(project);
  } finally {
    api.close();
  }
}

class Reader {
  readonly #project: Project;
  readonly #checker: Checker;

  constructor(project: Project) {
    this.#project = project;
    this.#checker = project.checker;
  }

  exportsOf(path: string): Sym[] {
    const file = this.#project.program.getSourceFile(join(root, path));
    const module = file === undefined ? undefined : this.#checker.getSymbolAtLocation(file);
    if (module === undefined) throw new Error(`${path} is no module of the project.`);
    const exported = this.#checker.getExportsOfModule(module);
    return exported
      .map((symbol) => (symbol.flags & SymbolFlags.Alias ? this.#checker.getAliasedSymbol(symbol) : symbol))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  read(symbol: Sym): TypeEntry {
    const type = this.#checker.getDeclaredTypeOfSymbol(symbol);
    const text = symbol.getDocumentationComment(this.#checker);
    const isObject = type.isObjectType() || type.isIntersectionType();
    const isFunction = this.#checker.getSignaturesOfType(type, 0).length > 0;
    const fields =
      isObject && !isFunction ? this.#checker.getPropertiesOfType(type).map((own) => this.#field(own)) : [];
    return { name: symbol.name, text, fields, is: fields.length > 0 ? '' : this.#whatItIs(symbol, type) };
  }

  hasOnlyMethods(symbol: Sym): boolean {
    if ((symbol.flags & SymbolFlags.Interface) === 0) return false;
    const own = this.#checker.getPropertiesOfType(this.#checker.getDeclaredTypeOfSymbol(symbol));
    return own.length > 0 && own.every(({ flags }) => (flags & SymbolFlags.Method) !== 0);
  }

  readClass(symbol: Sym): ClassEntry {
    const own = this.#checker.getPropertiesOfType(this.#checker.getDeclaredTypeOfSymbol(symbol));
    const isClass = (symbol.flags & SymbolFlags.Class) !== 0;
    const statics = isClass ? this.#checker.getPropertiesOfType(this.#checker.getTypeOfSymbol(symbol) as Type) : [];
    const members = [...statics, ...own].flatMap((member) => {
      const node = member.declarations[0]?.resolve(this.#project) as MemberNode | undefined;
      const isInternal = member.getJsDocTags(this.#checker).some(({ name }) => name === 'internal');
      const isNamed = /^[a-z]\w*$/i.test(member.name) && member.name !== 'prototype';
      if (node?.name === undefined || isInternal || !isNamed) return [];
      if (node.getSourceFile().fileName.includes('/node_modules/')) return [];
      const { text } = node.getSourceFile();
      const written = text.slice(node.name.pos, node.body?.pos ?? node.end).replaceAll(/\/\*\*[\s\S]*?\*\//g, '');
      const signature = written.trim().replace(/;$/, '');
      const comment = member.getDocumentationComment(this.#checker);
      return [{ name: member.name, signature: signature.replaceAll(/\s*\n\s*/g, ' '), text: comment }];
    });
    return { name: symbol.name, text: symbol.getDocumentationComment(this.#checker), members };
  }

  /** Returns the type of a symbol in TypeScript. Types that are computed from values or other types are written out. */
  #whatItIs(symbol: Sym, type: Type): string {
    const text = this.#declared(symbol);
    return /typeof|infer|\['| in /.test(text) ? this.#checker.typeToString(type) : text;
  }

  #field(symbol: Sym): FieldEntry {
    const checker = this.#checker;
    const tags = new Map(symbol.getJsDocTags(checker).map(({ name, text }) => [name, text]));
    const type = checker.getTypeOfSymbol(symbol) as Type;
    const comment = symbol.getDocumentationComment(checker);
    const isMethod = (symbol.flags & SymbolFlags.Method) !== 0;
    const text = isMethod ? undefined : this.#declared(symbol);
    return {
      name: symbol.name,
      optional: (symbol.flags & SymbolFlags.Optional) !== 0,
      type: (text || checker.typeToString(type)).replace(/ \| undefined$/, ''),
      text: comment.replace(DEFAULT_AT_END, ''),
      default: tags.get('default') ?? DEFAULT_AT_END.exec(comment)?.[1],
      limit: tags.get('limit'),
      isMethod,
    };
  }

  /** Returns the type of a declaration as its author wrote it, with the names of types. */
  #declared(symbol: Sym): string {
    const node = symbol.declarations[0]?.resolve(this.#project) as (Node & { type?: Node }) | undefined;
    if (node?.type === undefined) return '';
    const { text } = node.getSourceFile();
    return text
      .slice(node.type.pos, node.type.end)
      .trim()
      .replaceAll(/\/\*\*[\s\S]*?\*\//g, '')
      .replaceAll(/\s*\n\s*/g, ' ')
      .replace(/^\| /, '')
      .replace(/^\((.*)\) \| undefined$/, '$1');
  }

  /** Returns names of types of this repository that the declaration of a symbol uses. */
  namedIn(symbol: Sym): string[] {
    const names: string[] = [];
    const visit = (node: Node): undefined => {
      if (isHidden(node)) return undefined;
      if (node.kind === SyntaxKind.TypeReference) names.push(...this.#ownName((node as TypeReferenceNode).typeName));
      node.forEachChild(visit);
      return undefined;
    };
    for (const declaration of symbol.declarations) {
      const node = declaration.resolve(this.#project);
      if (node !== undefined) visit(node);
    }
    return names;
  }

  #ownName(name: Node): string[] {
    const found = this.#checker.getSymbolAtLocation(name);
    if (found === undefined) return [];
    const symbol = found.flags & SymbolFlags.Alias ? this.#checker.getAliasedSymbol(found) : found;
    const path = symbol.declarations[0]?.path;
    const isOwn = path !== undefined && !path.includes('/node_modules/');
    return isOwn && (symbol.flags & SymbolFlags.TypeParameter) === 0 ? [symbol.name] : [];
  }
}

/** Returns true for parts that a signature omits: bodies, private members and constructors, which are all internal. */
function isHidden(node: Node): boolean {
  const { name } = node as Node & { name?: Node };
  const isPrivate = name?.kind === SyntaxKind.PrivateIdentifier;
  return isPrivate || node.kind === SyntaxKind.Block || node.kind === SyntaxKind.Constructor;
}
