// What a template becomes when it is parsed. Names are numbers in the template's table of names.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "chat/jinja/value.h"

namespace quipu::jinja {

using Name = std::uint32_t;

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr spread;        ///< *x
  ExprPtr spread_named;  ///< **x
};

struct Literal {
  Value value;
};
struct Variable {
  Name name = 0;
};
struct ListLiteral {
  std::vector<ExprPtr> items;
  bool tuple = false;
};
struct DictLiteral {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
struct Unary {
  enum class Op { negate, plus, logical_not } op = Op::plus;
  ExprPtr operand;
};
struct Binary {
  enum class Op { add, subtract, multiply, divide, floor_divide, modulo, power } op = Op::add;
  ExprPtr left, right;
};
struct Logical {
  bool is_and = false;
  ExprPtr left, right;
};
struct Compare {
  enum class Op { equal, unequal, less, less_equal, greater, greater_equal, in, not_in };
  ExprPtr first;
  std::vector<std::pair<Op, ExprPtr>> rest;
};
struct Concat {
  std::vector<ExprPtr> parts;
};
struct Conditional {
  ExprPtr test, yes;
  ExprPtr no;  ///< null: undefined
};
struct Attribute {
  ExprPtr object;
  std::string name;
};
struct Subscript {
  ExprPtr object, key;
};
struct Slice {  ///< as the key of a subscript; null where nothing was written
  ExprPtr start, stop, step;
};
struct Call {
  ExprPtr callee;
  CallArguments arguments;
};
struct FilterCall {
  ExprPtr input;  ///< null: what a filter or set block holds
  std::string name;
  CallArguments arguments;
};
struct TestCall {
  ExprPtr input;
  std::string name;
  CallArguments arguments;
};

struct Expr {
  std::uint32_t at = 0;      ///< byte of the source
  std::uint32_t height = 1;  ///< of the tree below, itself included
  std::variant<Literal, Variable, ListLiteral, DictLiteral, Unary, Binary, Logical, Compare, Concat,
               Conditional, Attribute, Subscript, Slice, Call, FilterCall, TestCall>
      node;
};

/// What can be assigned to: a name, an attribute of a namespace, or a tuple of these.
struct Target {
  std::uint32_t at = 0;
  Name name = 0;
  std::optional<std::string> attribute;
  bool is_tuple = false;
  std::vector<Target> parts;
};

struct Statement;
using Body = std::vector<Statement>;

struct Output {
  ExprPtr expression;
};
struct For {
  Target target;
  ExprPtr iterable;
  ExprPtr test;  ///< may be null
  bool recursive = false;
  std::shared_ptr<Body> body, otherwise;
};
struct If {
  struct Branch {
    ExprPtr test;  ///< null: else
    std::shared_ptr<Body> body;
  };
  std::vector<Branch> branches;
};
struct Set {
  Target target;
  ExprPtr value;
};
struct SetBlock {
  Target target;
  ExprPtr filter;  ///< a FilterCall without an innermost input; may be null
  std::shared_ptr<Body> body;
};
struct MacroDefinition {
  struct Parameter {
    Name name = 0;
    ExprPtr usual;  ///< null: none
  };
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<std::string> parameter_names;
  bool uses_caller = false, uses_varargs = false, uses_kwargs = false;
  std::shared_ptr<Body> body;
};
struct MacroStatement {
  Name name = 0;
  std::shared_ptr<MacroDefinition> definition;
};
struct CallBlock {
  ExprPtr call;
  std::shared_ptr<MacroDefinition> caller;
};
struct FilterBlock {
  ExprPtr filter;
  std::shared_ptr<Body> body;
};
struct With {
  std::vector<std::pair<Target, ExprPtr>> variables;
  std::shared_ptr<Body> body;
};
struct Break {};
struct Continue {};

struct Statement {
  std::uint32_t at = 0;
  std::variant<Literal, Output, For, If, Set, SetBlock, MacroStatement, CallBlock, FilterBlock, With, Break,
               Continue>
      node;
};

struct Program {
  std::vector<std::string> names;
  Body body;

  // Names that the language itself gives values to.
  static constexpr Name kLoop = 0, kCaller = 1, kVarargs = 2, kKwargs = 3;
};

}  // namespace quipu::jinja
