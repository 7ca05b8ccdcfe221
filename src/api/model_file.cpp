#include <string>
#include <utility>

#include "api/access.h"
#include "api/builtin.h"
#include "api/guard.h"
#include "gguf/reader.h"
#include "model/tensor_check.h"
#include "quipu/model.h"

namespace quipu {

struct ModelFile::Impl {
  explicit Impl(gguf::Reader opened) : reader(std::move(opened)) {}
  gguf::Reader reader;
};

ModelFile::ModelFile(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

ModelFile ModelFile::open(const std::filesystem::path& path) {
  return guarded([&] { return ModelFile(std::make_shared<const Impl>(gguf::Reader::open(path))); });
}

ModelFile ModelFile::built_in() {
  return guarded([] {
    return ModelFile(
        std::make_shared<const Impl>(gguf::Reader::from_memory(builtin_model_bytes(), kBuiltinName)));
  });
}

std::string ModelFile::name() const {
  return impl_->reader.origin();
}

Metadata ModelFile::metadata() const {
  return ApiAccess::metadata(std::shared_ptr<const gguf::Metadata>(impl_, &impl_->reader.metadata()));
}

std::vector<TensorDescription> ModelFile::tensors() const {
  return guarded([&] {
    std::vector<TensorDescription> result;
    result.reserve(impl_->reader.tensors().size());
    for (const gguf::TensorInfo& tensor : impl_->reader.tensors()) {
      result.push_back({tensor.name, std::string(info(tensor.type).name), tensor.dims, tensor.n_elements,
                        tensor.bytes, tensor.shard, tensor.offset});
    }
    return result;
  });
}

Tokenizer ModelFile::tokenizer() const {
  return guarded([&] { return ApiAccess::tokenizer(Vocab::load(impl_->reader.metadata())); });
}

ModelFileCheck ModelFile::check() const {
  return guarded([&] {
    ModelReport report = check_model(impl_->reader);
    ModelFileCheck result{.problems = {}, .unused_tensors = std::move(report.unknown)};
    for (const Error& problem : report.problems) result.problems.push_back(problem.message());
    return result;
  });
}

std::string ModelFile::architecture() const {
  return metadata().string("general.architecture").value_or("");
}

std::uint32_t ModelFile::version() const {
  return impl_->reader.version();
}
std::uint32_t ModelFile::alignment() const {
  return impl_->reader.alignment();
}
std::size_t ModelFile::n_shards() const {
  return impl_->reader.n_shards();
}
std::uint64_t ModelFile::file_bytes() const {
  return impl_->reader.file_bytes();
}

// Each size was checked against a real file's, so the sums are far from wrapping.
std::uint64_t ModelFile::tensor_bytes() const {
  std::uint64_t sum = 0;
  for (const gguf::TensorInfo& tensor : impl_->reader.tensors()) sum += tensor.bytes;
  return sum;
}
std::uint64_t ModelFile::n_params() const {
  std::uint64_t sum = 0;
  for (const gguf::TensorInfo& tensor : impl_->reader.tensors()) sum += tensor.n_elements;
  return sum;
}

}  // namespace quipu
